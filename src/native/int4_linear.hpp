// Linear layers of int4 weights in groups of 32, whose inputs are quantised row by row as they come: the
// definition is in sparsact/kernels/int4_linear.py, whose names are used here.
#pragma once

#include <cstddef>
#include <cstdint>

#include "isa.hpp"

namespace sparsact {

constexpr std::size_t INT4_GROUP = 32;  // weights that share a multiplier: both halves of 16 bytes
constexpr std::size_t INT4_BLOCK = 64;  // bytes that a row is filled up to

struct Int4Weights {
    const std::uint8_t* rows;        // (t, width), weights + 8
    const std::int8_t* multipliers;  // (t, width / 16)
    const float *scale, *bias;       // one number an output
    std::size_t t, n, width;         // n columns are in use
    bool tiled;                      // whether both stand in tiles, a group of 16 rows side by side

    const std::uint8_t* row(std::size_t j) const { return rows + j * width; }
    const std::int8_t* multipliers_of(std::size_t j) const { return multipliers + j * (width / 16); }
};

SPARSACT_DECLARE(
    // codes (m, n) of X (m, n) and a scale for each row, NaN where a number is not finite.
    void int4_codes(const float* X, std::size_t m, std::size_t n, std::int8_t* codes, float* scales);

    // out (m, t) = X W^T + b; with a mask (m, t) at its places, and 0 elsewhere.
    void int4_rows(const Int4Weights& W, const float* X, const std::uint8_t* mask, std::size_t m, float* out,
                   int n_threads);

    // out (m, n) = H V + b, for H (m, t); returns how many codes are not 0, whose rows alone are read.
    std::int64_t int4_columns(const Int4Weights& V, const float* H, std::size_t m, float* out,
                              int n_threads);)

}  // namespace sparsact
