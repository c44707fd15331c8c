// Change of a network's value as each coordinate of a point is flipped, from the pre-activations at the
// point.
//
// Units that no flip switches on add nothing and are skipped; units that no flip switches off are linear: one
// product and one sum a weight. Only units nearer to 0 than one flip can move them are computed twice.
#include <cstddef>
#include <cstdint>

#include "isa.hpp"
#include "sparse_units.hpp"

namespace sparsact {

struct PointsAndUnits {
    const std::int8_t* X;     // (m, n), signs
    const double* Z;          // (m, s), pre-activations
    const double *u, *reach;  // (s,): no flip moves unit j by more than reach[j]
    std::size_t m, n, s;
};

SPARSACT_DECLARE(
    // differences (m, n) of h(x) - h(x with coordinate i flipped); n_threads <= 0: as many as OpenMP would
    // take.
    void flip_differences(PointsAndUnits points, const double* W, double* differences, int n_threads);
    void flip_differences(PointsAndUnits points, SparseUnits W, double* differences, int n_threads);)

}  // namespace sparsact

#ifdef SPARSACT_ISA

#include <algorithm>
#include <vector>

#include "scratch.hpp"
#include "threads.hpp"
#include "vector.hpp"

namespace sparsact::SPARSACT_ISA {

namespace {

using Reals = Vector<double>;

constexpr int VECTORS = 8;  // differences of a tile of coordinates: they stay in registers while units pass
constexpr std::size_t TILE = VECTORS * lanes<double>;
constexpr std::size_t ROWS = 256;  // points that share a tile of weights in the cache

// The units of some points that matter: `linear` ones, which no flip switches off, and those `near` 0.
class Units {
  public:
    Units(const PointsAndUnits& points, std::size_t begin, std::size_t end) : begin_(begin) {
        for (std::size_t row = begin; row < end; ++row) {
            const double* z = points.Z + row * points.s;
            starts_.push_back(units_.size());
            for (std::size_t j = 0; j < points.s; ++j)
                if (z[j] >= points.reach[j]) units_.push_back(j);
            starts_.push_back(units_.size());
            for (std::size_t j = 0; j < points.s; ++j)
                if (z[j] < points.reach[j] && z[j] > -points.reach[j]) units_.push_back(j);
        }
        starts_.push_back(units_.size());
    }

    struct List {
        const std::size_t *first, *last;
        const std::size_t* begin() const { return first; }
        const std::size_t* end() const { return last; }
    };

    List linear(std::size_t row) const { return list(2 * (row - begin_)); }
    List near(std::size_t row) const { return list(2 * (row - begin_) + 1); }

  private:
    List list(std::size_t i) const { return {units_.data() + starts_[i], units_.data() + starts_[i + 1]}; }

    std::size_t begin_;
    std::vector<std::size_t> starts_, units_;
};

template <class V>
SPARSACT_INLINE V relu(V z) {
    return z > 0.0 ? z : V{};
}

// One row's differences of a tile; weights (s, TILE), twice (TILE,) holds 2 x.
void fill_tile(const PointsAndUnits& points, const Units& units, std::size_t row, const double* weights,
               const double* twice, double* differences) {
    Reals slopes[VECTORS] = {}, sums[VECTORS] = {}, moves[VECTORS];
    for (int v = 0; v < VECTORS; ++v) moves[v] = load<Reals>(twice + v * lanes<double>);
    for (const std::size_t j : units.near(row)) {
        const double z = points.Z[row * points.s + j], on = std::max(z, 0.0), u = points.u[j];
        for (int v = 0; v < VECTORS; ++v) {
            const Reals w = load<Reals>(weights + j * TILE + v * lanes<double>);
            sums[v] += u * (on - relu<Reals>(z - w * moves[v]));
        }
    }
    for (const std::size_t j : units.linear(row))
        for (int v = 0; v < VECTORS; ++v)
            slopes[v] += points.u[j] * load<Reals>(weights + j * TILE + v * lanes<double>);
    for (int v = 0; v < VECTORS; ++v) store(differences + v * lanes<double>, sums[v] + slopes[v] * moves[v]);
}

void fill_rows(const PointsAndUnits& points, const double* W, std::size_t begin, std::size_t end,
               Scratch<double>& weights, double* differences) {
    const Units units(points, begin, end);
    alignas(64) double twice[TILE] = {}, tile[TILE];
    for (std::size_t first = 0; first < points.n; first += TILE) {
        const std::size_t width = std::min(TILE, points.n - first);
        for (std::size_t j = 0; j < points.s; ++j)
            std::copy_n(W + j * points.n + first, width, weights.data() + j * TILE);
        for (std::size_t row = begin; row < end; ++row) {
            const std::size_t place = row * points.n + first;
            for (std::size_t i = 0; i < width; ++i) twice[i] = 2.0 * points.X[place + i];
            fill_tile(points, units, row, weights.data(), twice, tile);
            std::copy_n(tile, width, differences + place);
        }
    }
}

void fill_rows(const PointsAndUnits& points, const SparseUnits& W, std::size_t begin, std::size_t end,
               Scratch<double>& slopes, double* differences) {
    const Units units(points, begin, end);
    for (std::size_t row = begin; row < end; ++row) {
        const std::int8_t* x = points.X + row * points.n;
        double* difference = differences + row * points.n;
        std::fill_n(difference, points.n, 0.0);
        std::fill_n(slopes.data(), points.n, 0.0);
        for (const std::size_t j : units.near(row)) {
            const double z = points.Z[row * points.s + j], on = std::max(z, 0.0);
            for (std::int64_t k = W.starts[j]; k < W.starts[j + 1]; ++k) {
                const auto i = static_cast<std::size_t>(W.inputs[k]);
                difference[i] += points.u[j] * (on - relu(z - W.weights[k] * (2.0 * x[i])));
            }
        }
        for (const std::size_t j : units.linear(row))
            for (std::int64_t k = W.starts[j]; k < W.starts[j + 1]; ++k)
                slopes[static_cast<std::size_t>(W.inputs[k])] += points.u[j] * W.weights[k];
        for (std::size_t i = 0; i < points.n; ++i) difference[i] += slopes[i] * (2.0 * x[i]);
    }
}

template <class Weights>
void fill(const PointsAndUnits& points, const Weights& W, std::size_t scratch, double* differences,
          int n_threads) {
    const auto threads = static_cast<std::size_t>(available_threads(n_threads));
    const std::size_t rows = std::min(ROWS, (points.m + threads - 1) / threads);
    if (rows == 0) return;
    in_parallel(static_cast<int>(threads), (points.m + rows - 1) / rows, [&](std::size_t task) {
        Scratch<double> memory(scratch);
        std::fill_n(memory.data(), scratch, 0.0);  // weights that fill up the last tile: any that are finite
        fill_rows(points, W, task * rows, std::min((task + 1) * rows, points.m), memory, differences);
    });
}

}  // namespace

void flip_differences(PointsAndUnits points, const double* W, double* differences, int n_threads) {
    fill(points, W, points.s * TILE, differences, n_threads);
}

void flip_differences(PointsAndUnits points, SparseUnits W, double* differences, int n_threads) {
    fill(points, W, points.n, differences, n_threads);
}

}  // namespace sparsact::SPARSACT_ISA

#else

#include "bind.hpp"

namespace sparsact {

namespace {

template <class T>
using List = Array<const T, 1>;
template <class T>
using Table = Array<T, 2>;
using Signs = Table<const std::int8_t>;
using Reals = Table<const double>;

PointsAndUnits points_of(const Signs& X, const Reals& Z, const List<double>& u, const List<double>& reach) {
    return {X.data(), Z.data(), u.data(), reach.data(), X.shape(0), X.shape(1), u.shape(0)};
}

}  // namespace

SPARSACT_BINDINGS(module) {
    module.def(
        "flip_differences",
        [](Signs X, Reals Z, Reals W, List<double> u, List<double> reach, Table<double> differences,
           int n_threads) {
            const PointsAndUnits points = points_of(X, Z, u, reach);
            const double* weights = W.data();
            double* out = differences.data();
            nb::gil_scoped_release unlocked;
            SPARSACT_DISPATCH(flip_differences, points, weights, out, n_threads);
        },
        nb::arg("X").noconvert(), nb::arg("Z").noconvert(), nb::arg("W").noconvert(),
        nb::arg("u").noconvert(), nb::arg("reach").noconvert(), nb::arg("differences").noconvert(),
        nb::arg("n_threads"));
    module.def(
        "sparse_flip_differences",
        [](Signs X, Reals Z, List<std::int64_t> starts, List<std::int32_t> inputs, List<double> weights,
           List<double> u, List<double> reach, Table<double> differences, int n_threads) {
            const PointsAndUnits points = points_of(X, Z, u, reach);
            const SparseUnits W{starts.data(), inputs.data(), weights.data(), u.shape(0)};
            double* out = differences.data();
            nb::gil_scoped_release unlocked;
            SPARSACT_DISPATCH(flip_differences, points, W, out, n_threads);
        },
        nb::arg("X").noconvert(), nb::arg("Z").noconvert(), nb::arg("indptr").noconvert(),
        nb::arg("indices").noconvert(), nb::arg("weights").noconvert(), nb::arg("u").noconvert(),
        nb::arg("reach").noconvert(), nb::arg("differences").noconvert(), nb::arg("n_threads"));
}

}  // namespace sparsact

#endif
