// All subsets of at most `size` of n coordinates in numeric order, and the rank of each among them.
// No vectors in it: compiled once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "family.hpp"

namespace sparsact {

// masks (subsets, words), in the order of the numbers they spell; the last word is the most significant.
void subsets_in_order(std::size_t n, std::size_t size, std::size_t words, std::uint64_t* masks);

// gram (family.size, family.size): gram[a, b] = moments[rank of masks[a] ^ masks[b]], which has at most
// `size` members. n_threads <= 0: as many as OpenMP would take.
void ranked_gram(Family family, const double* moments, std::size_t n, std::size_t size, double* gram,
                 int n_threads);

}  // namespace sparsact
