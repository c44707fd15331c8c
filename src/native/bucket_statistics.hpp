// Additive sums of each bucket, and the polynomials that fit them.
//
// Additions, and each step of a factor, come in the order of the reference: the same bits on every
// instruction set and number of threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "isa.hpp"

namespace sparsact {

// Rows in their buckets. An id that is no bucket's is passed over.
struct BucketRows {
    const std::int32_t* ids;                            // (m, tables)
    const double* Z;                                    // (m, p)
    const double* V;                                    // (m, tables or 1, p)
    const double* Y;                                    // (m, targets)
    const double* weights;                              // (m,)
    std::size_t m, tables, features_apart, p, targets;  // features_apart: 1 if each table has its own, else 0
    int degree;

    // Where in V the features of a row stand.
    std::size_t features(std::size_t row, std::size_t table) const {
        return (features_apart ? row * tables + table : row) * p;
    }
};

struct BucketSums {
    std::int64_t* counts;  // (n,)
    double* sums;          // (n, n_sums), as Shape of monomials.hpp has them
    std::size_t n;
};

struct Solved {
    double* coefficients;  // (n, D, targets)
    double* residual;      // (n, targets)
};

SPARSACT_DECLARE(
    // sign 1 adds the rows, -1 takes them away: table by table, row by row; the sums of a bucket whose last
    // row is taken away become 0. Returns by how many there are more buckets that hold rows.
    std::int64_t accumulate(const BucketRows& rows, int sign, BucketSums buckets);

    // n_threads <= 0: as many as OpenMP would take.
    void solve(const double* sums, std::size_t n, std::size_t p, int degree, std::size_t targets,
               double alpha, Solved out, int n_threads);)

}  // namespace sparsact
