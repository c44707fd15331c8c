// The k largest values of each row, exactly; of equal values the first ones win.
//
// Which values they are depends on no instruction set and no number of threads; the sums of `top_k_dot`
// neither, for they are always taken in the same 64 parts.
#pragma once

#include <cstddef>
#include <cstdint>

#include "isa.hpp"

namespace sparsact {

template <class T>
struct Choice {
    const T* values;  // (m, t), without NaN
    std::size_t m, t;
    std::size_t k;  // 1 to t
    bool absolute;  // rank by absolute value
};

SPARSACT_DECLARE(
    // places (m, k), increasing; n_threads <= 0: as many as OpenMP would take.
    template <class T> void top_k(Choice<T> choice, std::int64_t* places, int n_threads);

    // dots (m, targets) of the chosen values and the rows of A (targets, t).
    template <class T>
    void top_k_dot(Choice<T> choice, const T* A, std::size_t targets, T* dots, int n_threads);

    // masked (m, t): the chosen values, 0 elsewhere.
    template <class T> void top_k_masked(Choice<T> choice, T* masked, int n_threads);)

}  // namespace sparsact
