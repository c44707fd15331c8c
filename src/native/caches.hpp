// What the processor says of its caches. Internal linkage: each instruction set keeps its own copy.
#pragma once

#if defined(__x86_64__) && !defined(_MSC_VER)
#include <cpuid.h>

#include <initializer_list>
#endif

namespace sparsact {
namespace {

// Lines that each set of the first data cache holds; 0 if unknown.
[[maybe_unused]] inline unsigned first_cache_ways() {
#if defined(__x86_64__) && !defined(_MSC_VER)
    // Intel describes its caches in leaf 4, AMD in leaf 0x8000001D, in one format; AMD leaves leaf 4 empty.
    for (unsigned leaf : {0x4u, 0x8000001Du})
        for (unsigned i = 0; i < 8; ++i) {
            unsigned eax, ebx, ecx, edx;
            if (!__get_cpuid_count(leaf, i, &eax, &ebx, &ecx, &edx)) break;
            const unsigned kind = eax & 31, level = eax >> 5 & 7;
            if (kind == 0) break;
            if (level == 1 && kind == 1) return (ebx >> 22) + 1;
        }
#endif
    return 0;
}

}  // namespace
}  // namespace sparsact
