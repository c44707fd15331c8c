// Monomials of a bucket's polynomial, and where its sums stand. For a number or a vector of numbers alike.
#pragma once

#include <cstddef>

#include "scratch.hpp"
#include "vector.hpp"

namespace sparsact::SPARSACT_ISA {

// A bucket's sums, in order: w z (p); w times each monomial of at most twice the degree, whose first D are
// the features phi; w phi_a y_t; w y_t**2. Products of two features are such monomials, each kept once. Then
// come the low words of the sums of targets. Each such sum is kept as two numbers: a target of 1e12 that
// comes and goes leaves them as they were.
struct Shape {
    std::size_t p, D, targets, monomials;

    Shape(std::size_t p, int degree, std::size_t targets)
        : p(p), D(n_monomials(p, degree)), targets(targets), monomials(n_monomials(p, 2 * degree)) {}

    std::size_t monomial(std::size_t k) const { return p + k; }
    std::size_t cross(std::size_t a, std::size_t t) const { return p + monomials + a * targets + t; }
    std::size_t square(std::size_t t) const { return cross(D, t); }
    std::size_t values() const { return square(targets); }
    std::size_t low_words() const { return (D + 1) * targets; }
    std::size_t sums() const { return values() + low_words(); }

    // Monomials of at most `degree` in p coordinates.
    static std::size_t n_monomials(std::size_t p, int degree) {
        std::size_t n = 1;
        for (int k = 1; k <= degree; ++k) n = n * (p + k) / k;
        return n;
    }
};

// Calls f(0, 1), f(1, v_0), ..., then f(., v_i v_j) for i <= j: monomials of at most `degree` with their
// numbers. v(j) is a coordinate.
template <class V, class Coordinate, class F>
SPARSACT_INLINE void for_each_monomial(std::size_t p, int degree, Coordinate v, F f) {
    f(std::size_t{0}, V{} + 1.0);
    std::size_t a = 1;
    if (degree >= 1)
        for (std::size_t j = 0; j < p; ++j) f(a++, v(j));
    if (degree >= 2)
        for (std::size_t i = 0; i < p; ++i)
            for (std::size_t j = i; j < p; ++j) f(a++, v(i) * v(j));
}

// Monomials of degree 2, ..., `degree`: those at first, ..., first + count - 1 are coordinate j times those
// at source, ..., of a degree less and of coordinates from j on. Each is a product in ascending order.
struct Product {
    std::size_t j, source, first, count;
};

namespace {

// How monomials are made from the coordinates, which stand at 1, ..., p.
class Products {
  public:
    Products(std::size_t p, int degree) : steps_(degree > 1 ? p * static_cast<std::size_t>(degree - 1) : 0) {
        std::size_t at = 1 + p;
        for (int k = 2; k <= degree; ++k) {
            const std::size_t end = at;
            for (std::size_t j = 0; j < p; ++j) {
                std::size_t count = 1;  // of degree k - 1 in p - j coordinates
                for (int i = 1; i < k; ++i) count = count * (p - j + i - 1) / i;
                steps_[n_++] = {j, end - count, at, count};
                at += count;
            }
        }
    }

    const Product* begin() const { return steps_.data(); }
    const Product* end() const { return steps_.data() + n_; }

  private:
    Scratch<Product> steps_;
    std::size_t n_ = 0;
};

// A vector of numbers, one for each lane.
template <class F>
SPARSACT_INLINE Vector<double> lanes_of(F f) {
    double lane[lanes<double>];
    for (std::size_t l = 0; l < static_cast<std::size_t>(lanes<double>); ++l) lane[l] = f(l);
    return load<Vector<double>>(lane);
}

// What rows, one a lane, add to the sums of their buckets: z(j) and v(j) are coordinates, y(t) targets.
template <class Z, class V, class Y>
SPARSACT_INLINE void contributions(const Shape& shape, const Products& products, Vector<double> weight, Z z,
                                   V v, Y y, Vector<double>* own) {
    for (std::size_t j = 0; j < shape.p; ++j) own[j] = weight * z(j);
    Vector<double>* monomials = own + shape.monomial(0);
    monomials[0] = weight;
    if (shape.D > 1)
        for (std::size_t j = 0; j < shape.p; ++j) monomials[1 + j] = weight * v(j);
    for (const auto [j, source, first, count] : products) {
        const Vector<double> by = v(j);
        for (std::size_t k = 0; k < count; ++k) monomials[first + k] = by * monomials[source + k];
    }
    for (std::size_t t = 0; t < shape.targets; ++t) {
        const Vector<double> target = y(t);
        for (std::size_t a = 0; a < shape.D; ++a) own[shape.cross(a, t)] = monomials[a] * target;
        own[shape.square(t)] = (weight * target) * target;
    }
}

// Adds to a sum of two numbers, the second below half a unit in the last place of the first.
template <class V>
SPARSACT_INLINE void add_twofold(V& high, V& low, V own) {
    const V sum = high + own, part = sum - high;
    const V rest = low + ((high - (sum - part)) + (own - part));
    high = sum + rest;
    low = rest - (high - sum);
}

// Calls add(to, own) with each lane of vectors first, ..., last - 1 and where its bucket has them, several at
// a time, if it has any.
template <class Add>
SPARSACT_INLINE void for_each_lane(const Vector<double>* own, std::size_t first, std::size_t last,
                                   double* const* sums, Add add) {
    using V = Vector<double>;
    constexpr std::size_t LANES = lanes<double>;
    std::size_t k = first;
    for (; k + LANES <= last; k += LANES) {
        V block[LANES];
        for (std::size_t l = 0; l < LANES; ++l) block[l] = own[k + l];
        transpose<double>(block);
        for (std::size_t l = 0; l < LANES; ++l)
            if (sums[l]) add(sums[l] + k, block[l]);
    }
    for (; k < last; ++k) {
        double lane[LANES];
        store(lane, own[k]);
        for (std::size_t l = 0; l < LANES; ++l)
            if (sums[l]) add(sums[l] + k, lane[l]);
    }
}

inline Vector<double> loaded(const double* from, Vector<double>) { return load<Vector<double>>(from); }
inline double loaded(const double* from, double) { return *from; }
inline void stored(double* to, double number) { *to = number; }
inline void stored(double* to, Vector<double> numbers) { store(to, numbers); }

// Adds each lane of the vectors to the sums of its bucket, if it has one.
inline void add_lanes(const Vector<double>* own, const Shape& shape, double* const* sums) {
    const std::size_t first = shape.cross(0, 0), last = shape.values(), apart = shape.low_words();
    for_each_lane(own, 0, first, sums,
                  [](double* to, auto number) { stored(to, loaded(to, number) + number); });
    for_each_lane(own, first, last, sums, [&](double* to, auto number) {
        auto high = loaded(to, number), low = loaded(to + apart, number);
        add_twofold(high, low, number);
        stored(to, high);
        stored(to + apart, low);
    });
}

}  // namespace

}  // namespace sparsact::SPARSACT_ISA
