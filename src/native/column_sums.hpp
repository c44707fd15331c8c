// Rows times a matrix, a block of rows at a time and columns side by side. A sum runs over the columns of its
// row in order, from 0. Internal linkage: each instruction set keeps its own copy.
#pragma once

#include <algorithm>
#include <type_traits>

#include "vector.hpp"

namespace sparsact::SPARSACT_ISA {
namespace {

using Reals = Vector<double>;

constexpr std::size_t BLOCK = 32;  // rows: column i of a block stands at i * BLOCK
constexpr std::size_t LANES = lanes<double>;

// `width` columns of sums over n columns times directions, from 0, with offsets added last (null: none).
template <int width>
SPARSACT_INLINE void project_tile(const double* columns, std::size_t n, const double* directions,
                                  std::size_t stride, const double* offsets, std::size_t height,
                                  double* out) {
    for (std::size_t row = 0; row < height; row += LANES) {
        Reals total[width] = {};
        for (std::size_t i = 0; i < n; ++i) {
            const Reals x = load<Reals>(columns + i * BLOCK + row);
            for (int j = 0; j < width; ++j) total[j] += x * directions[i * stride + j];
        }
        for (int j = 0; j < width; ++j)
            store(out + j * BLOCK + row, offsets ? total[j] + offsets[j] : total[j]);
    }
}

// The same for the first row alone, several columns of sums to a vector; other rows get 0.
inline void project_row(const double* columns, std::size_t n, const double* directions, std::size_t stride,
                        const double* offsets, std::size_t width, double* out) {
    constexpr std::size_t VECTORS = 4, TILE = VECTORS * LANES;
    for (std::size_t first = 0; first < width; first += TILE) {
        const std::size_t here = std::min(TILE, width - first);
        alignas(64) double total[TILE] = {};
        if (here == TILE) {
            Reals sums[VECTORS] = {};
            for (std::size_t i = 0; i < n; ++i)
                for (std::size_t v = 0; v < VECTORS; ++v)
                    sums[v] += columns[i * BLOCK] * load<Reals>(directions + i * stride + first + v * LANES);
            for (std::size_t v = 0; v < VECTORS; ++v) store(total + v * LANES, sums[v]);
        } else {
            for (std::size_t i = 0; i < n; ++i)
                for (std::size_t j = 0; j < here; ++j)
                    total[j] += columns[i * BLOCK] * directions[i * stride + first + j];
        }
        for (std::size_t j = 0; j < here; ++j) {
            double lane[LANES] = {offsets ? total[j] + offsets[first + j] : total[j]};
            store(out + (first + j) * BLOCK, load<Reals>(lane));
        }
    }
}

inline void project(const double* columns, std::size_t n, const double* directions, std::size_t stride,
                    const double* offsets, std::size_t width, std::size_t rows, double* out) {
    if (rows == 1 && width >= LANES) return project_row(columns, n, directions, stride, offsets, width, out);
    std::size_t j = 0;
    const auto tiles = [&](auto constant) {
        constexpr int tile = decltype(constant)::value;
        for (; j + tile <= width; j += tile)
            project_tile<tile>(columns, n, directions + j, stride, offsets ? offsets + j : nullptr, rows,
                               out + j * BLOCK);
    };
    tiles(std::integral_constant<int, 8>{});
    tiles(std::integral_constant<int, 4>{});
    tiles(std::integral_constant<int, 1>{});
}

}  // namespace
}  // namespace sparsact::SPARSACT_ISA
