// Numbers of buckets by key: see slots.hpp. Plain code, compiled once.
//
// Keys get the numbers that the reference gives them; where in the slots a key stands may differ, for the
// reference puts many in at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "slots.hpp"

namespace sparsact {

struct OpenSlots {
    std::uint64_t* words;  // (n, 2)
    std::size_t n;         // a power of two; more than there are buckets
};

// ids (m,): number of each key's bucket, or -1.
void find(Slots slots, const std::uint64_t* keys, std::size_t m, std::int32_t* ids);

// Gives new keys the next numbers, in order of appearance; returns how many buckets there are now.
std::size_t insert(OpenSlots slots, std::uint64_t* bucket_keys, std::size_t n_buckets,
                   const std::uint64_t* keys, std::size_t m, std::int32_t* ids);

// Puts buckets start, ..., stop - 1, none of which stands there yet, into the slots.
void fill(OpenSlots slots, const std::uint64_t* bucket_keys, std::size_t start, std::size_t stop);

}  // namespace sparsact
