// Sums of products of doubles that never round, on a fixed grid of exponents.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sparsact {

struct Exponents {
    int low;   // every non-zero value is a multiple of 2^low
    int high;  // and smaller than 2^high in magnitude
};

Exponents exponent_range(const double* values, std::size_t count);
// limbs[l * cells + index[i]] += digit l, in base 2^32 and from 2^(32 base) on, of a[i] * b[i] * c[i].
// index == nullptr means index[i] = i; b == nullptr means b[i] = 1; c == nullptr means c[i] = 1.
void add_products(std::int64_t* limbs, std::size_t places, std::size_t cells, int base,
                  const std::uint64_t* index, const double* a, const double* b, const double* c,
                  std::size_t count);

}  // namespace sparsact
