// Sweeps over rows of features compiled for avx2; flags are set in CMakeLists.txt.
#define MERCER_ISA avx2
#include "ascent_inner.hpp"
