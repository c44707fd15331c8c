// Active units at every point of the cube {-1, 1}^n.
//
// Each half of the coordinates has its table of signed sums, so that a pre-activation is the sum of a low and
// a high entry. For a fixed high entry, unit j is on at the last of the sorted low entries: the point's place
// in that order, 16 bits, is compared in place of its sum.
#pragma once

#include <cstddef>
#include <cstdint>

#include "isa.hpp"

namespace sparsact {

struct CubeUnits {
    const double *W, *b, *tolerance;  // (s, n), (s,), (s,)
    std::size_t s, n;                 // s < 2**15, 1 <= n <= 30
};

// The smallest number of a point with the most units on: surely, and possibly.
struct Witnesses {
    std::int64_t lower, upper;
};

SPARSACT_DECLARE(
    // histograms (2, s + 1) are added to; n_threads <= 0: as many as OpenMP would take.
    Witnesses count_active(CubeUnits units, std::int64_t* histograms, int n_threads);)

}  // namespace sparsact
