// The only file of the core that knows Python: it checks nothing but types and hands plain pointers on.
#include <nanobind/nanobind.h>

namespace nb = nanobind;

// The widest instruction set this CPU offers among those the core is compiled for.
static const char* instruction_set() {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) return "avx512";
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "avx2";
#endif
    return "baseline";
}

NB_MODULE(_core, m) {
    m.doc() = "The compiled core of mercer.";
    m.def("instruction_set", &instruction_set, "The instruction set the core runs with on this CPU.");
}
