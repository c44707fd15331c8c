// How the tables of a model answer together, and a table that answers for one row at a time.
#pragma once

#include <cstddef>

#include "isa.hpp"
#include "vector.hpp"

namespace sparsact {

// Tables are averaged by weight, or the first one answers whose bucket is not empty.
enum class Combine { average, first };

// Where a table keeps a row between hashing it and evaluating its polynomials.
struct alignas(64) RowSpace {
    unsigned char bytes[8448];
};

// A hash table that predicts one row and one target; Python holds it as a capsule. Each step prefetches what
// the next one reads, so several tables take their steps in turns.
class RowTable {
  public:
    virtual ~RowTable() = default;
    virtual void hash(const double* x, RowSpace& row) const = 0;  // x (columns(),)
    virtual void look_up(RowSpace& row) const = 0;
    // The value, and the weight behind it; the row is gone then.
    virtual double value(RowSpace& row, double& behind) const = 0;
    virtual std::size_t columns() const = 0;
};

namespace SPARSACT_ISA {

// The share of a bucket in the values of a row, to whose total weight it is added; 0: none.
SPARSACT_INLINE double share(Combine combine, double weight, double& total) {
    if (combine == Combine::first) {
        if (total > 0.0 || !(weight > 0.0)) return 0.0;
        total = weight;
        return 1.0;
    }
    total += weight < 0.0 ? 0.0 : weight;
    return weight > 0.0 ? weight : 0.0;
}

}  // namespace SPARSACT_ISA
}  // namespace sparsact
