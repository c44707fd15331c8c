// Where rows fall: local coordinates, integer codes and 64-bit keys of buckets.
//
// Every sum runs over the columns of a row in order, from 0: a row has the same bits on every instruction set
// and number of threads, and whatever rows stand beside it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "isa.hpp"

namespace sparsact {

// Hash functions of `tables` tables, `q` codes each. With `grid` the codes are cells of the p local
// coordinates, rotated and shifted (q = p), and features are places within a cell. Without, codes are made
// from the d centred columns, and features are the local coordinates.
struct Hashes {
    const double* centre;        // (d,)
    const double* local;         // (d, p)
    const double* directions;    // (p or d, tables * q)
    const double* offsets;       // (tables * q,)
    const std::uint64_t* seeds;  // (tables,)
    std::size_t d, p, q, tables;
    bool grid, signs;
};

struct Places {
    double* Z;            // (m, p)
    double* V;            // (m, tables, p), or without grid (m, 1, p)
    std::uint64_t* keys;  // (m, tables)
};

SPARSACT_DECLARE(
    // X is (m, d); n_threads <= 0: as many as OpenMP would take.
    void places(const double* X, std::size_t m, const Hashes& hashes, Places found, int n_threads);

    // keys (m,) of rows (m, n), word by word.
    void row_keys(const std::uint64_t* rows, std::size_t m, std::size_t n, std::uint64_t* keys);)

}  // namespace sparsact
