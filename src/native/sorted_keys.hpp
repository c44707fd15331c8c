// Keys of buckets in ascending order, under a directory: groups share their first bits, and a key within its
// group is told by the next 32. Any content is safe: no key is read that is not there.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "builtins.hpp"
#include "isa.hpp"
#include "slots.hpp"
#include "vector.hpp"

namespace sparsact {

struct SortedKeys {
    const std::uint32_t* starts;  // (groups + 1,): where each group begins
    const std::uint32_t* tags;    // (n,)
    std::size_t groups, n;        // groups a power of two, at least 2
};

}  // namespace sparsact

#ifdef SPARSACT_ISA

#ifndef SPARSACT_ISA_portable
#include <immintrin.h>
#endif

namespace sparsact::SPARSACT_ISA {
namespace {

// A bit for each of eight tags that is the one looked for.
#ifdef SPARSACT_ISA_portable
inline std::uint32_t equal_tags(const std::uint32_t* tags, std::uint32_t tag) {
    std::uint32_t same = 0;
    for (std::uint32_t j = 0; j < 8; ++j) same |= std::uint32_t{tags[j] == tag} << j;
    return same;
}
#else
inline std::uint32_t equal_tags(const std::uint32_t* tags, std::uint32_t tag) {
    const __m256i equal = _mm256_cmpeq_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(tags)),
                                             _mm256_set1_epi32(static_cast<int>(tag)));
    return static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(equal)));
}
#endif

}  // namespace

class SortedSearch {
  public:
    explicit SortedSearch(SortedKeys keys) : keys_(keys) {
        while (keys.groups >> (bits_ + 1)) ++bits_;
    }

    SPARSACT_INLINE void prefetch_home(std::uint64_t key) const { prefetch(keys_.starts, group(key)); }

    // Number of a key's bucket, or NOWHERE. A group holds four buckets on average: eight are looked at
    // without a branch, which would be mispredicted.
    SPARSACT_INLINE std::uint64_t number(std::uint64_t key) const {
        constexpr std::size_t AT_ONCE = 8;
        const std::size_t at = group(key), first = keys_.starts[at],
                          stop = std::min<std::size_t>(keys_.starts[at + 1], keys_.n);
        const auto tag = static_cast<std::uint32_t>(key << bits_ >> 32);
        std::size_t i = first;
        if (first < stop && keys_.n >= AT_ONCE) {
            const std::size_t begin = std::min(first, keys_.n - AT_ONCE);
            const std::uint32_t same = equal_tags(keys_.tags + begin, tag) >> (first - begin);
            if (same != 0) {
                const std::size_t found = first + static_cast<std::size_t>(trailing_zeros(same));
                return found < stop ? found : NOWHERE;
            }
            i = begin + AT_ONCE;
        }
        for (; i < stop; ++i)
            if (keys_.tags[i] == tag) return i;
        return NOWHERE;
    }

  private:
    SPARSACT_INLINE std::size_t group(std::uint64_t key) const {
        return static_cast<std::size_t>(key >> (64 - bits_));
    }

    SortedKeys keys_;
    int bits_ = 0;
};

}  // namespace sparsact::SPARSACT_ISA

#endif
