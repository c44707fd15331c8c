// Products with the few rows of a matrix that each input selects.
//
// The order of every sum is fixed: that of a dot product runs through PARTIAL_BYTES of partial sums side by
// side, which are then added in halves; rows are added in the order selected. Every instruction set and
// number of threads gives the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "bfloat16.hpp"
#include "isa.hpp"

namespace sparsact {

struct Places {
    const std::int64_t* rows;  // (m, k), less than t; -1: none
    std::size_t m, k, t;
};

SPARSACT_DECLARE(
    // dots (m, k): <X[i], W[rows[i, j]]>, for X (m, n) and W (t, n); 0 at places without a row.
    template <class T>
    void gather_dot(const T* X, const T* W, std::size_t n, Places places, T* dots, int n_threads);

    // sums (m, n): sum_j A[i, j] V[rows[i, j]], for A (m, k) and V (t, n).
    template <class T>
    void gather_sum(const T* A, const T* V, std::size_t n, Places places, T* sums, int n_threads);

    // Rows of sums (t, n) that a place names: the sum of A[i, j] X[i] over the places that name it, for A (m,
    // k) and X (m, n). Other rows are left as they are.
    template <class T>
    void scatter_outer(const T* A, const T* X, std::size_t n, Places places, T* sums, int n_threads);)

}  // namespace sparsact
