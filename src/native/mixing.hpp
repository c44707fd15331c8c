// Keys of buckets: codes are mixed in one by one, then every bit is made to depend on every other. For a word
// or a vector of words alike.
#pragma once

#include <cstdint>

#include "vector.hpp"

namespace sparsact::SPARSACT_ISA {

constexpr std::uint64_t STEP = 0x9E3779B97F4A7C15, FIRST = 0xBF58476D1CE4E5B9, SECOND = 0x94D049BB133111EB;

template <class Words>
SPARSACT_INLINE Words mixed(Words keys, Words code) {
    keys = (keys ^ code) * STEP;
    return keys ^ (keys >> 32);
}

// The finaliser of splitmix64.
template <class Words>
SPARSACT_INLINE Words finished(Words keys) {
    keys = (keys ^ (keys >> 30)) * FIRST;
    keys = (keys ^ (keys >> 27)) * SECOND;
    return keys ^ (keys >> 31);
}

}  // namespace sparsact::SPARSACT_ISA
