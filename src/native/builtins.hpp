// What compilers give beyond standard C++, in one place. GCC and Clang (clang-cl too) have it; for others,
// and wherever SPARSACT_PLAIN_CXX is defined, it is written out. Internal linkage: each instruction set keeps
// its own copy.
#pragma once

#include <cstdint>

#if defined(_MSC_VER) && !defined(__clang__)
#define SPARSACT_PLAIN_CXX
#endif

namespace sparsact {
namespace {

#ifndef SPARSACT_PLAIN_CXX

[[maybe_unused]] inline int popcount(std::uint64_t x) { return __builtin_popcountll(x); }
// Zeros below the lowest one of x, which is not 0.
[[maybe_unused]] inline int trailing_zeros(std::uint64_t x) { return __builtin_ctzll(x); }
// Zeros above the highest one of x, which is not 0.
[[maybe_unused]] inline int leading_zeros(std::uint64_t x) { return __builtin_clzll(x); }
// Hints only: the address need not exist.
[[maybe_unused]] inline void prefetch_read(const void* address) { __builtin_prefetch(address); }
[[maybe_unused]] inline void prefetch_write(const void* address) { __builtin_prefetch(address, 1); }

__extension__ using Wide = unsigned __int128;
[[maybe_unused]] inline Wide wide_product(std::uint64_t a, std::uint64_t b) {
    return static_cast<Wide>(a) * b;
}
[[maybe_unused]] inline std::uint64_t low_word(Wide x) { return static_cast<std::uint64_t>(x); }

#else

[[maybe_unused]] inline int popcount(std::uint64_t x) {
    int count = 0;
    for (; x != 0; x &= x - 1) ++count;
    return count;
}
[[maybe_unused]] inline int trailing_zeros(std::uint64_t x) { return popcount(~x & (x - 1)); }
[[maybe_unused]] inline int leading_zeros(std::uint64_t x) {
    for (int step = 1; step < 64; step *= 2) x |= x >> step;
    return popcount(~x);
}
[[maybe_unused]] inline void prefetch_read(const void*) {}
[[maybe_unused]] inline void prefetch_write(const void*) {}

// 128 bits that are multiplied once and then shifted to the right.
struct Wide {
    std::uint64_t low, high;
    Wide(std::uint64_t low_bits, std::uint64_t high_bits = 0) : low(low_bits), high(high_bits) {}
    Wide& operator>>=(int shift) {
        if (shift >= 64) {
            low = shift < 128 ? high >> (shift - 64) : 0;
            high = 0;
        } else if (shift > 0) {
            low = low >> shift | high << (64 - shift);
            high >>= shift;
        }
        return *this;
    }
    bool operator!=(std::uint64_t word) const { return high != 0 || low != word; }
    bool operator==(std::uint64_t word) const { return high == 0 && low == word; }
};
[[maybe_unused]] inline Wide wide_product(std::uint64_t a, std::uint64_t b) {
    constexpr std::uint64_t half = 0xFFFFFFFFu;
    const std::uint64_t low = (a & half) * (b & half), left = (a >> 32) * (b & half);
    const std::uint64_t right = (a & half) * (b >> 32), middle = (low >> 32) + (left & half) + (right & half);
    return {(low & half) | middle << 32,
            (a >> 32) * (b >> 32) + (left >> 32) + (right >> 32) + (middle >> 32)};
}
[[maybe_unused]] inline std::uint64_t low_word(Wide x) { return x.low; }

#endif

}  // namespace
}  // namespace sparsact
