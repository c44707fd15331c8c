// Sums of products of doubles that never round, on a fixed grid of exponents.
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

#ifdef SPARSACT_ISA_portable

#include <algorithm>
#include <cstring>

#include "builtins.hpp"

namespace sparsact {

namespace {

constexpr int kLimbBits = 32;
constexpr std::uint64_t kLimbMask = 0xFFFFFFFFu;

// A double as an integer times a power of two: value = (negative ? -1 : 1) * mantissa * 2^exponent.
struct Scaled {
    std::uint64_t mantissa;
    int exponent;
    bool negative;
};

inline Scaled scaled(double value) {
    std::uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    const int biased = static_cast<int>(bits >> 52 & 0x7FF);
    const std::uint64_t fraction = bits & ((std::uint64_t{1} << 52) - 1);
    const bool normal = biased != 0;
    return {fraction | std::uint64_t{normal} << 52, (normal ? biased : 1) - 1075, bits >> 63 != 0};
}

// Adds mantissa * 2^exponent, digit by digit; the caller's grid covers every non-zero digit.
inline void add_scaled(std::int64_t* cell, std::size_t stride, int base, Wide mantissa, int exponent,
                       bool negative) {
    if (mantissa == 0) return;
    int offset = exponent - kLimbBits * base;
    if (offset < 0) {  // the low bits are zeros: the grid starts at the lowest set bit of any value
        mantissa >>= -offset;
        offset = 0;
    }
    std::int64_t* limb = cell + static_cast<std::size_t>(offset / kLimbBits) * stride;
    const int shift = offset % kLimbBits;
    std::uint64_t carry = 0;
    for (; mantissa != 0 || carry != 0; mantissa >>= kLimbBits, limb += stride) {
        const std::uint64_t digits = ((low_word(mantissa) & kLimbMask) << shift) + carry;
        const auto digit = static_cast<std::int64_t>(digits & kLimbMask);
        *limb += negative ? -digit : digit;
        carry = digits >> kLimbBits;
    }
}

}  // namespace

Exponents exponent_range(const double* values, std::size_t count) {
    int low = 1 << 20, high = -(1 << 20);
    for (std::size_t i = 0; i < count; ++i) {
        const Scaled s = scaled(values[i]);
        if (s.mantissa == 0) continue;
        low = std::min(low, s.exponent + trailing_zeros(s.mantissa));
        high = std::max(high, s.exponent + 64 - leading_zeros(s.mantissa));
    }
    return low <= high ? Exponents{low, high} : Exponents{0, 0};
}

void add_products(std::int64_t* limbs, std::size_t places, std::size_t cells, int base,
                  const std::uint64_t* index, const double* a, const double* b, const double* c,
                  std::size_t count) {
    constexpr std::size_t ahead = 16;  // cells are visited at random: prefetch for a few rows at a time
    for (std::size_t i = 0; i < count; ++i) {
        if (index && i + ahead < count)
            for (std::size_t place = 0; place < places; ++place)
                prefetch_write(limbs + place * cells + index[i + ahead]);
        const Scaled x = scaled(a[i]);
        std::int64_t* cell = limbs + (index ? index[i] : i);
        if (b == nullptr) {
            add_scaled(cell, cells, base, x.mantissa, x.exponent, x.negative);
        } else {
            const Scaled y = scaled(b[i]);
            // A power of two, most often a weight of 1, only shifts: the product stays short.
            const int zeros = y.mantissa == std::uint64_t{1} << 52 ? 52 : 0;
            const Wide product = wide_product(x.mantissa, y.mantissa >> zeros);
            const int exponent = x.exponent + y.exponent + zeros;
            const bool negative = x.negative != y.negative;
            if (c == nullptr) {
                add_scaled(cell, cells, base, product, exponent, negative);
                continue;
            }
            const Scaled z = scaled(c[i]);  // 159 bits: the low 53 of the product and the others take turns
            const std::uint64_t low = low_word(product) & ((std::uint64_t{1} << 53) - 1);
            const std::uint64_t high = low_word(product >> 53);
            const bool sign = negative != z.negative;
            add_scaled(cell, cells, base, wide_product(low, z.mantissa), exponent + z.exponent, sign);
            add_scaled(cell, cells, base, wide_product(high, z.mantissa), exponent + z.exponent + 53, sign);
        }
    }
}

}  // namespace sparsact

#elif !defined(SPARSACT_ISA)

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <optional>

#include "bind.hpp"

namespace sparsact {

using Values = Array<const double, 1>;
using Index = Array<const std::uint64_t, 1>;
using Limbs = Array<std::int64_t, 2>;

SPARSACT_BINDINGS(module) {
    module.def("exponent_range", [](Values values) {
        const Exponents range = exponent_range(values.data(), values.shape(0));
        return std::pair<int, int>(range.low, range.high);
    });
    module.def(
        "add_products",
        [](Limbs limbs, int base, std::optional<Index> index, Values a, std::optional<Values> b,
           std::optional<Values> c) {
            const std::uint64_t* at = index ? index->data() : nullptr;
            const double* times = b ? b->data() : nullptr;
            const double* again = c ? c->data() : nullptr;
            nb::gil_scoped_release unlocked;
            add_products(limbs.data(), limbs.shape(0), limbs.shape(1), base, at, a.data(), times, again,
                         a.shape(0));
        },
        nb::arg("limbs").noconvert(), nb::arg("base"), nb::arg("index").none(), nb::arg("a"),
        nb::arg("b").none(), nb::arg("c").none());
}

}  // namespace sparsact

#endif
