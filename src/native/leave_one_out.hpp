// What the tables would say of each row had they never seen it. The same bits on every instruction set and
// number of threads: tables come in order.
#pragma once

#include "bucket_statistics.hpp"

namespace sparsact {

struct HeldSums {
    const std::int64_t* counts;  // (n,)
    const double* sums;          // (n, n_sums)
    std::size_t n;
};

SPARSACT_DECLARE(
    // values (m, targets) and total (m,), the weight behind each. Buckets left with fewer than `least` rows
    // are empty. n_threads <= 0: as many as OpenMP would take.
    void leave_one_out(const BucketRows& rows, double alpha, std::int64_t least, HeldSums buckets,
                       double* values, double* total, int n_threads);)

}  // namespace sparsact
