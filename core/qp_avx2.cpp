// The inner solver compiled for avx2; flags are set in CMakeLists.txt.
#define MERCER_ISA avx2
#define MERCER_BYTES 32
#include "qp_inner.hpp"
