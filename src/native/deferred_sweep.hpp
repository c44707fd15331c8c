// A sweep put off, to be done a few columns at a time between the tiles of the next block.
//
// A tile waits for the arithmetic units, a sweep over the second cache for the traffic to the first. Side by
// side each takes the time that the other leaves. No bit changes: the two blocks have no entry in common.
#pragma once

#include "butterflies.hpp"

namespace sparsact::SPARSACT_ISA {

template <class T>
class DeferredSweep {
  public:
    // Eight rows, so at most eight of the twelve lines that each set of the first cache has: two such sweeps
    // at once would drive each other out of it.
    static constexpr int radix = 8;

    void defer(Rows<T> rows, std::size_t width) {
        finish();
        left_ = sweep_edges<radix>(rows, width);
    }

    // Two columns of eight vectors are the share of a tile of 16: done when the tiles of an equal block are.
    SPARSACT_INLINE void advance() {
        if (left_.width > 0) sweep_next(left_.width < 2 * lanes<T> ? left_.width : 2 * lanes<T>);
    }

    void finish() { sweep_next(left_.width); }

  private:
    SPARSACT_INLINE void sweep_next(std::size_t width) {
        columns<radix, Vector<T>>(left_.rows, left_.rows, width);
        left_.rows.data += width;
        left_.width -= width;
    }

    Block<T> left_{};
};

}  // namespace sparsact::SPARSACT_ISA
