// Values at rows: hash, look up, evaluate, average over tables. The same bits on every instruction set and
// number of threads, and for a row whatever rows stand beside it: tables come in order.
#pragma once

#include "hashing.hpp"
#include "slots.hpp"

namespace sparsact {

// The polynomials of n buckets. A slot with another number is a miss, as is a bucket of weight 0.
struct BucketPolynomials {
    Slots slots;
    const double* coefficients;  // (n, D, targets)
    const double* weights;       // (n,)
    std::size_t n, D, targets;
    int degree;
};

SPARSACT_DECLARE(
    // values (m, targets) of X (m, d): the rows times trend (d, targets), and the weighted average (or sum)
    // over tables; total (m,), the weight behind each. n_threads <= 0: as many as OpenMP would take.
    void bucket_values(const double* X, std::size_t m, const Hashes& hashes, const BucketPolynomials& buckets,
                       const double* trend, bool average, double* values, double* total, int n_threads);)

}  // namespace sparsact
