// Values of a network of ReLU units with sparse weights, in strips of rows that stay in the cache.
//
// A unit's products are added from 0 in the order stored, its threshold last; units are added in order, from
// 0: every instruction set and number of threads gives the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "isa.hpp"
#include "sparse_units.hpp"

namespace sparsact {

template <class T>
struct Rows {
    const T* values;  // (m, n)
    std::size_t m, n;
};

SPARSACT_DECLARE(
    // values (m,) of sum_j u[j] relu(z_j), with z_j = <w_j, x> - b[j]; n_threads <= 0: as many as OpenMP
    // would take.
    template <class T> void network_values(Rows<T> X, SparseUnits units, const double* b, const double* u,
                                           double* values, int n_threads);

    // lower and upper (m,): units with z_j > tolerance[j], and with z_j > -tolerance[j].
    template <class T>
    void active_units(Rows<T> X, SparseUnits units, const double* b, const double* tolerance,
                      std::int64_t* lower, std::int64_t* upper, int n_threads);)

}  // namespace sparsact
