// Polynomials of several buckets, one a lane.
#pragma once

#include <algorithm>
#include <utility>

#include "column_sums.hpp"
#include "monomials.hpp"

namespace sparsact::SPARSACT_ISA {
namespace {

SPARSACT_INLINE Reals widened(const double* from) { return load<Reals>(from); }
SPARSACT_INLINE Reals widened(const float* from) {
#ifdef SPARSACT_VECTORS
    return __builtin_convertvector(load<Vector<float, widest_bytes / 2>>(from), Reals);
#else
    return static_cast<double>(*from);
#endif
}

// Numbers k, ..., k + LANES - 1 of each bucket, one vector per number; near the end of the n numbers, the
// last LANES of them. Returns which number comes first.
template <class Number>
SPARSACT_INLINE std::size_t columns(const Number* const* own, std::size_t n, std::size_t k,
                                    Reals (&block)[LANES]) {
    if (n >= LANES) {
        const std::size_t first = std::min(k, n - LANES);
        for (std::size_t l = 0; l < LANES; ++l) block[l] = widened(own[l] + first);
        transpose<double>(block);
        return first;
    }
    for (std::size_t j = 0; j < n; ++j)
        block[j] = lanes_of([&](std::size_t l) { return static_cast<double>(own[l][j]); });
    return 0;
}

// The two coordinates whose product is monomial a, of degree 2 in P coordinates.
template <std::size_t P>
constexpr std::pair<std::size_t, std::size_t> factors(std::size_t a) {
    std::size_t i = 0, rest = a - 1 - P;
    for (; rest >= P - i; ++i) rest -= P - i;
    return {i, i + rest};
}

template <std::size_t P, std::size_t a, class Number>
SPARSACT_INLINE void add_monomial(const Number* const* own, const Reals* v, Reals (&block)[LANES],
                                  Reals& total) {
    constexpr std::size_t D = 1 + P + P * (P + 1) / 2;
    if constexpr (a % LANES == 0) columns(own, D, a, block);
    constexpr std::size_t first = D < LANES ? 0 : std::min(a / LANES * LANES, D - LANES);
    if constexpr (a == 0)
        total += block[0];
    else if constexpr (a <= P)
        total += v[a - 1] * block[a - first];
    else
        total += v[factors<P>(a).first] * v[factors<P>(a).second] * block[a - first];
}

template <std::size_t P, class Number, std::size_t... a>
SPARSACT_INLINE Reals quadratics(const Number* const* own, const Reals* v, std::index_sequence<a...>) {
    Reals total{}, block[LANES] = {};
    (add_monomial<P, a>(own, v, block, total), ...);
    return total;
}

// Values of the polynomials of own[l] (D,) at v (p,), lane by lane: each adds in the order of one alone. P is
// p where that is a constant, else 0.
template <std::size_t P, class Number>
SPARSACT_INLINE Reals polynomials(std::size_t p, int degree, const Number* const* own, const Reals* v) {
    if constexpr (P > 0)
        if (degree == 2) return quadratics<P>(own, v, std::make_index_sequence<1 + P + P*(P + 1) / 2>{});
    Reals total{}, block[LANES] = {};
    std::size_t first = 0;
    for_each_monomial<Reals>(
        p, degree, [&](std::size_t j) { return v[j]; },
        [&](std::size_t a, Reals phi) {
            if (a % LANES == 0) first = columns(own, Shape::n_monomials(p, degree), a, block);
            total += phi * block[a - first];
        });
    return total;
}

// Calls f with n as a constant, if it is one of 1, ..., 8, the dimensions of grids; else with 0.
template <class F>
SPARSACT_INLINE void with_dimension(std::size_t n, F f) {
    switch (n) {
        case 1:
            return f(std::integral_constant<std::size_t, 1>{});
        case 2:
            return f(std::integral_constant<std::size_t, 2>{});
        case 3:
            return f(std::integral_constant<std::size_t, 3>{});
        case 4:
            return f(std::integral_constant<std::size_t, 4>{});
        case 5:
            return f(std::integral_constant<std::size_t, 5>{});
        case 6:
            return f(std::integral_constant<std::size_t, 6>{});
        case 7:
            return f(std::integral_constant<std::size_t, 7>{});
        case 8:
            return f(std::integral_constant<std::size_t, 8>{});
        default:
            return f(std::integral_constant<std::size_t, 0>{});
    }
}

// Sums over tables, of one target, for the rows of a block.
class BlockSums {
  public:
    BlockSums(std::size_t p, int degree, bool alone)
        : p_(degree ? p : 0), degree_(degree), alone_(alone), far_(p_) {}

    void clear() {
        std::fill_n(values_, BLOCK, 0.0);
        std::fill_n(total_, BLOCK, 0.0);
    }

    double value(std::size_t r) const { return values_[r]; }
    double total(std::size_t r) const { return total_[r]; }

    // Adds a table's polynomials at the rows: own(r) are the coefficients of row r, v the columns (p, BLOCK)
    // of its features, and weight(r) is not positive where a bucket is empty. Where a table answers alone,
    // one that comes later adds nothing.
    template <class Own, class Weight>
    void add(std::size_t rows, const double* v, Own own, Weight weight) {
        with_dimension(p_, [&](auto constant) {
            constexpr std::size_t P = decltype(constant)::value;
            Reals near[P ? P : 1], *local = P ? near : far_.data();
            for (std::size_t r = 0; r < rows; r += LANES) {
                const Reals w = lanes_of([&](std::size_t l) { return weight(r + l); });
                const Reals before = load<Reals>(total_ + r), none{};
                const Reals taken = alone_ ? before : none, open = taken > 0.0 ? none : w;
                decltype(own(r)) from[LANES];
                for (std::size_t l = 0; l < LANES; ++l) from[l] = own(r + l);
                for (std::size_t j = 0; j < p_; ++j) local[j] = load<Reals>(v + j * BLOCK + r);
                const Reals value = polynomials<P>(p_, degree_, from, local);
                store(values_ + r,
                      load<Reals>(values_ + r) + (open > 0.0 ? (alone_ ? value : open * value) : none));
                store(total_ + r, before + (open < 0.0 ? none : open));
            }
        });
    }

  private:
    std::size_t p_;
    int degree_;
    bool alone_;
    Scratch<Reals> far_;
    alignas(64) double values_[BLOCK];
    alignas(64) double total_[BLOCK];
};

}  // namespace
}  // namespace sparsact::SPARSACT_ISA
