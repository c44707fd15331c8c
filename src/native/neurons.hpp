// Products of a feed-forward block that read only the weights of units that are active.
//
// The order of every sum is fixed and no input's depends on the others: every instruction set, number of
// threads and batch gives the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "halves.hpp"
#include "isa.hpp"

namespace sparsact {

// One row a unit, (s, n), of stored numbers S; products, biases and activations are numbers T.
template <class T, class S>
struct Units {
    const S* rows;
    const T* bias;  // (n,) of a sum of rows, (s,) of products with rows; null: none
    std::size_t s, n;
};

struct ActiveCounts {
    std::size_t entries, units;  // numbers that are not zero, and columns that hold one
};

SPARSACT_DECLARE(
    // out (m, n): bias + sum_j H[i, j] rows[j] over the units j at which H (m, s) is not zero, in order.
    // Returns how many numbers of H are not zero; if they are more than `most`, out is left as it is.
    template <class T, class S> std::size_t sparse_product(const T* H, std::size_t m, Units<T, S> V, T* out,
                                                           std::size_t most, int n_threads);

    // out (m, s): <X[i], rows[j]> + bias[j] where on (m, s) is not zero, and 0 elsewhere, for X (m, n).
    // Returns as sparse_product does.
    template <class T, class S, class M>
    std::size_t active_dot(const T* X, const M* on, std::size_t m, Units<T, S> W, T* out, std::size_t most,
                           int n_threads);

    template <class T> ActiveCounts active_counts(const T* H, std::size_t m, std::size_t s);)

}  // namespace sparsact
