// One row that comes to a table, or leaves it, in buckets that stay.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "combine.hpp"
#include "hashing.hpp"
#include "slots.hpp"

namespace sparsact {

// A table of one target whose sums change.
struct UpdatedTable {
    Hashes hashes;
    Slots slots;
    std::int64_t* counts;  // (n,)
    double* sums;          // (n, n_sums), as Shape of monomials.hpp has them
    std::uint8_t* stale;   // (n,): set where a bucket is to be solved again; null: none was solved
    std::size_t n;
    int degree;
};

class RowSums {
  public:
    virtual ~RowSums() = default;
    // The row's place; whoever is done with it drops it.
    virtual void hash(const double* x, RowSpace& row) const = 0;
    // Whether each of its buckets holds rows, and will still do so, and its sums stay floats. `finest` is the
    // largest number of cells to a unit of a coordinate.
    virtual bool find(RowSpace& row, int sign, double target, double finest) const = 0;
    // Adds the row (sign 1) or takes it away (-1).
    virtual void add(RowSpace& row, int sign, double target) = 0;
    virtual void drop(RowSpace& row) const = 0;
};

SPARSACT_DECLARE(std::unique_ptr<RowSums> row_sums(const UpdatedTable& table);)

}  // namespace sparsact
