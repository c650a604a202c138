// The tile kernels compiled for baseline; flags are set in CMakeLists.txt.
#define MERCER_ISA baseline
#define MERCER_ISA_NAME "baseline"
#define MERCER_BYTES 16
#include "isa_table.hpp"
