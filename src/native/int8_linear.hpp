// Linear layers of int8 weights, whose inputs are quantised as they come: the definition, with torch's rules,
// is in sparsact/kernels/int8_linear.py, whose names are used here.
#pragma once

#include <cstddef>
#include <cstdint>

#include "isa.hpp"

namespace sparsact {

constexpr std::size_t INT8_BLOCK = 64;  // bytes that a row of weights is filled up to, with zeros

struct Int8Weights {
    const std::int8_t* rows;    // (t, width)
    const float *scale, *bias;  // one number an output
    const std::int32_t* sums;   // (t,), of each row
    std::size_t t, n, width;    // n columns are in use
    bool tiled;                 // whether `rows` are the tiles of tiles.hpp
};

struct Quantization {
    float scale;
    std::int32_t zero_point;
};

SPARSACT_DECLARE(
    // codes (m, width) of X (m, n), and by (m,) what each row is quantised by: scale NaN and codes of 0 if a
    // number of it is not finite. Bytes from n on are left.
    void int8_codes(const float* X, std::size_t m, std::size_t n, std::size_t width, std::uint8_t* codes,
                    Quantization* by);

    // out (m, t) = X W^T + b; with a mask (m, t) at its places, and 0 elsewhere.
    void int8_rows(const Int8Weights& W, const float* X, const std::uint8_t* mask, std::size_t m, float* out,
                   int n_threads);

    // out (m, n) = H V + b, for H (m, t); returns how many codes are not that of 0, whose rows alone are
    // read.
    std::int64_t int8_columns(const Int8Weights& V, const float* H, std::size_t m, float* out,
                              int n_threads);)

}  // namespace sparsact
