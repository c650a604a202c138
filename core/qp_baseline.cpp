// The inner solver compiled for baseline; flags are set in CMakeLists.txt.
#define MERCER_ISA baseline
#define MERCER_BYTES 16
#include "qp_inner.hpp"
