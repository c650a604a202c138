// The inner solver compiled for avx512; flags are set in CMakeLists.txt.
#define MERCER_ISA avx512
#define MERCER_BYTES 64
#include "qp_inner.hpp"
