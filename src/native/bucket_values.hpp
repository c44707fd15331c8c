// Values at rows: hash, look up, evaluate, combine the tables. The same bits on every instruction set and
// number of threads, and for a row whatever rows stand beside it: tables come in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "combine.hpp"
#include "hashing.hpp"
#include "slots.hpp"

namespace sparsact {

// Buckets that are solved when a row first meets them. Threads may meet one at a time: who turns its `stale`
// from STALE to TAKEN solves it, the others wait for it to be SOLVED, and solve it themselves if that takes
// long.
struct Unsolved {
    std::uint8_t* stale;         // (n,); null: all are solved
    const std::int64_t* counts;  // (n,)
    const double* sums;          // (n, n_sums), as Shape of monomials.hpp has them
    const double* unit;          // (targets,): what coefficients are multiplied by
    std::int64_t least;          // buckets of fewer rows have weight 0
    double alpha;                // ridge penalty
};

constexpr std::uint8_t SOLVED = 0, STALE = 1, TAKEN = 2;

// The polynomials of n buckets. A slot with another number is a miss, as is a bucket of weight 0.
struct BucketPolynomials {
    Slots slots;
    double* records;  // (n, D * targets + 1): coefficients, and the weight behind them
    std::size_t n, D, targets;
    int degree;
    Unsolved unsolved;

    std::size_t size() const { return D * targets; }
    std::size_t stride() const { return size() + 1; }
    const double* polynomial(std::size_t number) const { return records + number * stride(); }
    double weight(std::size_t number) const { return polynomial(number)[size()]; }
};

SPARSACT_DECLARE(
    // values (m, targets) of X (m, d): the rows times trend (d, targets), and what the tables say together;
    // total (m,), the weight behind each. n_threads <= 0: as many as OpenMP would take.
    void bucket_values(const double* X, std::size_t m, const Hashes& hashes, const BucketPolynomials& buckets,
                       const double* trend, Combine combine, double* values, double* total, int n_threads);

    // The same for a single row and one target. What it is made from stays where it is.
    std::unique_ptr<RowTable> bucket_row_table(const Hashes& hashes, const BucketPolynomials& buckets,
                                               const double* trend, Combine combine);)

}  // namespace sparsact
