// Which instruction set runs: the widest the CPU has, or the one a test forces.
#include <atomic>

#include "verbs.hpp"

namespace mercer {

namespace baseline { extern const Isa table; }
#if defined(__x86_64__)
namespace avx2 { extern const Isa table; }
namespace avx512 { extern const Isa table; }
#endif

static const Isa* find(const std::string& name) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (name == "avx512" && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq"))
        return &avx512::table;
    if (name == "avx2" && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return &avx2::table;
#endif
    return name == "baseline" ? &baseline::table : nullptr;
}

static const Isa* widest() {
    for (const char* name : {"avx512", "avx2"})
        if (const Isa* isa = find(name)) return isa;
    return &baseline::table;
}

static std::atomic<const Isa*> chosen{nullptr};

const Isa& current_isa() {
    const Isa* isa = chosen.load();
    if (!isa) chosen = isa = widest();
    return *isa;
}

bool force_isa(const std::string& name) {
    const Isa* isa = find(name);
    if (isa) chosen = isa;
    return isa != nullptr;
}

template <> const Kernels<double>& kernels<double>() { return current_isa().f64; }
template <> const Kernels<float>& kernels<float>() { return current_isa().f32; }

}  // namespace mercer
