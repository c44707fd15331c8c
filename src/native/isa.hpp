// Which instruction set a kernel runs on.
//
// A kernel's source is compiled once per instruction set with SPARSACT_ISA set to `portable`, `avx2` or
// `avx512`, and puts its functions into `namespace sparsact::SPARSACT_ISA`. It is compiled once more without:
// that part holds the Python functions, which call the others through SPARSACT_DISPATCH. A kernel without
// vectors stands in `#ifdef SPARSACT_ISA_portable` and `namespace sparsact`, and needs no dispatch.
#pragma once

#include <stdexcept>
#include <string>

namespace sparsact {

enum class Isa { portable, avx2, avx512 };

// The widest set that this processor has; kernels/dispatch.py narrows it.
inline Isa widest_isa() {
#ifdef SPARSACT_X86
    __builtin_cpu_init();
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                      __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt") &&
                      __builtin_cpu_supports("f16c");
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                        __builtin_cpu_supports("avx512vpopcntdq");
    return avx512 ? Isa::avx512 : avx2 ? Isa::avx2 : Isa::portable;
#else
    return Isa::portable;
#endif
}

Isa current_isa();
void use_isa(const std::string& name);
const char* isa_name(Isa isa);
bool current_vnni();            // whether int8 products are VNNI's: if the current set has them here
bool current_amx();             // whether several inputs take AMX's products
unsigned current_cache_ways();  // lines in each set of the first data cache; 0 if unknown

}  // namespace sparsact

#ifdef SPARSACT_X86
#define SPARSACT_DISPATCH(function, ...)                                              \
    (sparsact::current_isa() == sparsact::Isa::avx512 ? avx512::function(__VA_ARGS__) \
     : sparsact::current_isa() == sparsact::Isa::avx2 ? avx2::function(__VA_ARGS__)   \
                                                      : portable::function(__VA_ARGS__))
#define SPARSACT_DECLARE(...) \
    namespace portable {      \
    __VA_ARGS__               \
    }                         \
    namespace avx2 {          \
    __VA_ARGS__               \
    }                         \
    namespace avx512 {        \
    __VA_ARGS__               \
    }
#else
#define SPARSACT_DISPATCH(function, ...) portable::function(__VA_ARGS__)
#define SPARSACT_DECLARE(...) \
    namespace portable {      \
    __VA_ARGS__               \
    }
#endif
