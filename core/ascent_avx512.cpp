// Sweeps over rows of features compiled for avx512; flags are set in CMakeLists.txt.
#define MERCER_ISA avx512
#include "ascent_inner.hpp"
