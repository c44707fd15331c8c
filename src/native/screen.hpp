// Which units are proved off: upper bounds of <w_j, x> + b_j - t_j from an int8 copy of the rows w_j. The
// proof is in sparsact/inference/certified_screen.py, whose names are used here.
//
// Every instruction set and number of threads gives the same bits: products of integers are exact, sums of
// doubles run through SCREEN_PARTIALS partial sums side by side, which are then added in halves, and a bound
// is evaluated in one order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "halves.hpp"
#include "isa.hpp"

namespace sparsact {

constexpr std::size_t SCREEN_PARTIALS = 32;
constexpr std::size_t SCREEN_BLOCK = 64;  // bytes that a row of the copy is filled up to, with zeros

struct Sketch {
    const std::uint8_t* rows;          // (s, width): q + 128; 128 from d on
    const double *a, *Q, *R, *offset;  // (s,); offset: b - t
    const float* along;                // (s, k): G
    const double* columns;             // (d,): 1 / c, powers of two
    const float* directions;           // (k, d): M
    double leak;                       // delta
    std::size_t s, d, k, width;
};

SPARSACT_DECLARE(
    // survivors (m, s): 0 where a unit is proved off, else 1; counts (m,) of the 1s. X is (m, d).
    template <class T> void screen_survivors(const Sketch& sketch, const T* X, std::size_t m,
                                             std::uint8_t* survivors, std::int64_t* counts, int n_threads);

    // bounds (m, s): upper bounds of <w_j, x> + offset_j; NaN where nothing is known.
    template <class T>
    void screen_bounds(const Sketch& sketch, const T* X, std::size_t m, double* bounds, int n_threads);

    // estimates (m, s) of <w_j, x> + offset_j.
    template <class T>
    void screen_estimates(const Sketch& sketch, const T* X, std::size_t m, float* estimates, int n_threads);)

}  // namespace sparsact
