// How the tables of a model answer together, and a table that answers for one row at a time.
#pragma once

#include <cstddef>

#include "isa.hpp"
#include "vector.hpp"

namespace sparsact {

// Tables are averaged by weight, added up, or the first one answers whose bucket is not empty.
enum class Combine { average, sum, first };

// Hash tables as one row asks them; Python holds it as a capsule.
class RowTable {
  public:
    virtual ~RowTable() = default;
    // The value of x (columns(),) for one target, and the weight behind it.
    virtual double single(const double* x, double& behind) const = 0;
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
