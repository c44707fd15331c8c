// Products of inputs with the rows of a quantised matrix that stands in tiles of 16 rows: four bytes of each
// row side by side, so that a vector of sums is one of outputs and no lanes are added up. A matrix by rows is
// brought into this order a few tiles at a time.
#pragma once

#include <algorithm>

#include "scratch.hpp"
#include "threads.hpp"
#include "vector.hpp"

namespace sparsact::SPARSACT_ISA {
namespace {

constexpr std::size_t TILE = 16;     // rows
constexpr std::size_t AHEAD = 2048;  // bytes between what is read and what is asked for
// Inputs that meet a tile together, and tiles that are read side by side for one input and for several: as
// many sums as the registers hold.
constexpr int TOGETHER = widest_bytes == 64 ? 8 : 4;
constexpr int TILES_OF_ONE = widest_bytes == 64 ? 4 : 2, TILES_OF_MANY = widest_bytes == 64 ? 2 : 1;

// to (width / 4, TILE, 4) = the bytes of TILE rows.
template <class Byte>
void put_tile(const Byte* const* rows, std::size_t width, Byte* to) {
    constexpr std::size_t count = lanes<std::int32_t>;
    for (std::size_t j = 0; j < TILE; j += count)
        for (std::size_t g = 0; g < width / 4; g += count) {
            Vector<std::int32_t> w[count];
            for (std::size_t r = 0; r < count; ++r) {
                w[r] = load<Vector<std::int32_t>>(rows[j + r] + 4 * g);
                prefetch(rows[j + r], 4 * g + 512);
            }
            transpose<std::int32_t>(w);
            for (std::size_t r = 0; r < count; ++r) store(to + ((g + r) * TILE + j) * 4, w[r]);
        }
}

// Rows per part, a multiple of TILE, if t rows are cut into `tiles` parts.
inline std::size_t part_of(std::size_t t, std::size_t tiles) {
    return (t + tiles * TILE - 1) / (tiles * TILE) * TILE;
}

// A matrix (t, width) of bytes in tiles, or by rows.
template <class Byte>
struct TileSource {
    const Byte* bytes;
    std::size_t t, width;
    bool tiled;

    // The tile that begins with row j: in `space` (TILE * width,) if it is not in memory.
    const Byte* tile(std::size_t j, Byte* space) const {
        if (tiled) return bytes + j * width;
        const Byte* rows[TILE];
        for (std::size_t r = 0; r < TILE; ++r) rows[r] = bytes + std::min(j + r, t - 1) * width;
        put_tile(rows, width, space);
        return space;
    }
    std::size_t space() const { return tiled ? 0 : TILE * width; }
    // Asks for the first lines of what is read side by side, while inputs are quantised.
    void ask() const {
        for (int n = 0; tiled && n < TILES_OF_ONE; ++n)
            for (std::size_t line = 0; line < 256; line += 64)
                prefetch(bytes, n * part_of(t, TILES_OF_ONE) * width + line);
    }
};

// put(i, j, sums) for TILE outputs from j on, of all t, and each of m inputs: prepare(n) makes what takes
// n tiles, take(n, j), and multiply(n, taken, first, inputs, sums) the products of `inputs` inputs from
// `first` on. Tiles that are read side by side are far apart: more streams of memory are asked for.
template <int tiles, std::size_t together, class Prepare, class Multiply, class Put>
void multiply_tiles(std::size_t t, std::size_t m, int n_threads, Prepare prepare, Multiply multiply,
                    Put put) {
    const std::size_t part = part_of(t, tiles);
    in_shares(n_threads, part / TILE, [&](std::size_t begin, std::size_t end) {
        auto taken = prepare();
        for (std::size_t start = begin * TILE; start < end * TILE; start += TILE) {
            for (int n = 0; n < tiles; ++n) taken.take(n, std::min(n * part + start, (t - 1) / TILE * TILE));
            for (std::size_t first = 0; first < m; first += together) {
                const std::size_t inputs = std::min(together, m - first);
                alignas(64) std::int32_t sums[together * tiles * TILE];
                multiply(taken, first, inputs, sums);
                for (std::size_t i = 0; i < inputs; ++i)
                    for (int n = 0; n < tiles; ++n)
                        if (n * part + start < t)
                            put(first + i, n * part + start, sums + (i * tiles + n) * TILE);
            }
        }
    });
}

}  // namespace
}  // namespace sparsact::SPARSACT_ISA
