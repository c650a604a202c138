// Sweeps over rows of features compiled for baseline; flags are set in CMakeLists.txt.
#define MERCER_ISA baseline
#include "ascent_inner.hpp"
