// Values of a network of ReLU units with sparse weights, in strips of rows that stay in the cache.
//
// A unit's products are added from 0 in the order stored, its threshold last; units are added in order, from
// 0: every instruction set and number of threads gives the same bits.
#include <cstddef>
#include <cstdint>

#include "isa.hpp"
#include "sparse_units.hpp"

namespace sparsact {

template <class T>
struct Rows {
    const T* values;  // (m, n)
    std::size_t m, n;
};

SPARSACT_DECLARE(
    // values (m,) of sum_j u[j] relu(z_j), with z_j = <w_j, x> - b[j]; n_threads <= 0: as many as OpenMP
    // would take.
    template <class T> void network_values(Rows<T> X, SparseUnits units, const double* b, const double* u,
                                           double* values, int n_threads);

    // lower and upper (m,): units with z_j > tolerance[j], and with z_j > -tolerance[j].
    template <class T>
    void active_units(Rows<T> X, SparseUnits units, const double* b, const double* tolerance,
                      std::int64_t* lower, std::int64_t* upper, int n_threads);)

}  // namespace sparsact

#ifdef SPARSACT_ISA

#include <algorithm>

#include "scratch.hpp"
#include "threads.hpp"
#include "vector.hpp"

namespace sparsact::SPARSACT_ISA {

namespace {

using Reals = Vector<double>;
using Counts = Vector<std::int64_t>;

constexpr int VECTORS = 8;  // of pre-activations: they stay in registers while the inputs of a unit pass
constexpr std::size_t STRIP = VECTORS * lanes<double>;  // rows
constexpr std::size_t GROUP = 16;                       // rows read side by side: few streams and pages

// The columns of STRIP rows from `first` on; rows past the last are left as they are, and finite.
template <class T>
void load_columns(const Rows<T>& X, std::size_t first, double* columns) {
    const std::size_t rows = std::min(STRIP, X.m - first);
    for (std::size_t begin = 0; begin < rows; begin += GROUP) {
        const T* group = X.values + (first + begin) * X.n;
        double* out = columns + begin;
        const std::size_t height = std::min(GROUP, rows - begin);
        if (height == GROUP)
            for (std::size_t i = 0; i < X.n; ++i)
                for (std::size_t r = 0; r < GROUP; ++r) out[i * STRIP + r] = group[r * X.n + i];
        else
            for (std::size_t r = 0; r < height; ++r)
                for (std::size_t i = 0; i < X.n; ++i) out[i * STRIP + r] = group[r * X.n + i];
    }
}

// Pre-activations of unit j at a strip of rows.
struct Preactivations {
    SPARSACT_INLINE Preactivations(const SparseUnits& units, double threshold, std::size_t j,
                                   const double* columns) {
        for (std::int64_t k = units.starts[j]; k < units.starts[j + 1]; ++k) {
            const double* column = columns + static_cast<std::size_t>(units.inputs[k]) * STRIP;
            for (int v = 0; v < VECTORS; ++v)
                z[v] += units.weights[k] * load<Reals>(column + v * lanes<double>);
        }
        for (int v = 0; v < VECTORS; ++v) z[v] -= threshold;
    }

    Reals z[VECTORS] = {};
};

// What becomes of the pre-activations of a strip: the network's values ...
struct Values {
    const double *b, *u;
    double* values;

    void operator()(const SparseUnits& units, const double* columns, std::size_t first,
                    std::size_t rows) const {
        Reals sums[VECTORS] = {};
        for (std::size_t j = 0; j < units.s; ++j) {
            const Preactivations unit(units, b[j], j, columns);
            for (int v = 0; v < VECTORS; ++v) sums[v] += u[j] * (unit.z[v] < 0.0 ? Reals{} : unit.z[v]);
        }
        alignas(64) double strip[STRIP];
        for (int v = 0; v < VECTORS; ++v) store(strip + v * lanes<double>, sums[v]);
        std::copy_n(strip, rows, values + first);
    }
};

// ... or the numbers of units on.
struct Active {
    const double *b, *tolerance;
    std::int64_t *lower, *upper;

    void operator()(const SparseUnits& units, const double* columns, std::size_t first,
                    std::size_t rows) const {
        Counts sure[VECTORS] = {}, possible[VECTORS] = {};
        for (std::size_t j = 0; j < units.s; ++j) {
            const Preactivations unit(units, b[j], j, columns);
            for (int v = 0; v < VECTORS; ++v) {
                sure[v] += unit.z[v] > tolerance[j] ? Counts{} + 1 : Counts{};
                possible[v] += unit.z[v] > -tolerance[j] ? Counts{} + 1 : Counts{};
            }
        }
        copy(sure, lower + first, rows);
        copy(possible, upper + first, rows);
    }

    static void copy(const Counts* counts, std::int64_t* out, std::size_t rows) {
        alignas(64) std::int64_t strip[STRIP];
        for (int v = 0; v < VECTORS; ++v) store(strip + v * lanes<double>, counts[v]);
        std::copy_n(strip, rows, out);
    }
};

template <class T, class F>
void for_each_strip(const Rows<T>& X, const SparseUnits& units, int n_threads, const F& f) {
    const std::size_t strips = (X.m + STRIP - 1) / STRIP,
                      tasks = std::min(strips, static_cast<std::size_t>(available_threads(n_threads)));
    in_parallel(static_cast<int>(tasks), tasks, [&](std::size_t task) {
        Scratch<double> columns(X.n * STRIP);
        std::fill_n(columns.data(), X.n * STRIP, 0.0);
        for (std::size_t strip = task * strips / tasks; strip < (task + 1) * strips / tasks; ++strip) {
            const std::size_t first = strip * STRIP;
            load_columns(X, first, columns.data());
            f(units, columns.data(), first, std::min(STRIP, X.m - first));
        }
    });
}

}  // namespace

template <class T>
void network_values(Rows<T> X, SparseUnits units, const double* b, const double* u, double* values,
                    int n_threads) {
    for_each_strip(X, units, n_threads, Values{b, u, values});
}

template <class T>
void active_units(Rows<T> X, SparseUnits units, const double* b, const double* tolerance, std::int64_t* lower,
                  std::int64_t* upper, int n_threads) {
    for_each_strip(X, units, n_threads, Active{b, tolerance, lower, upper});
}

#define SPARSACT_INSTANTIATE(T)                                                                     \
    template void network_values(Rows<T>, SparseUnits, const double*, const double*, double*, int); \
    template void active_units(Rows<T>, SparseUnits, const double*, const double*, std::int64_t*,   \
                               std::int64_t*, int);
SPARSACT_INSTANTIATE(double)
SPARSACT_INSTANTIATE(float)
SPARSACT_INSTANTIATE(std::int8_t)

}  // namespace sparsact::SPARSACT_ISA

#else

#include "bind.hpp"

namespace sparsact {

namespace {

template <class T>
using List = Array<T, 1>;
template <class T>
using Table = Array<const T, 2>;
using Starts = List<const std::int64_t>;
using Inputs = List<const std::int32_t>;
using Numbers = List<const double>;

template <class T>
void bind_rows_of(nb::module_& module) {
    module.def(
        "sparse_network_values",
        [](Table<T> X, Starts starts, Inputs inputs, Numbers weights, Numbers u, Numbers b,
           List<double> values, int n_threads) {
            const Rows<T> rows{X.data(), X.shape(0), X.shape(1)};
            const SparseUnits units{starts.data(), inputs.data(), weights.data(), b.shape(0)};
            const double *thresholds = b.data(), *output = u.data();
            double* out = values.data();
            nb::gil_scoped_release unlocked;
            SPARSACT_DISPATCH(network_values, rows, units, thresholds, output, out, n_threads);
        },
        nb::arg("X").noconvert(), nb::arg("indptr").noconvert(), nb::arg("indices").noconvert(),
        nb::arg("weights").noconvert(), nb::arg("u").noconvert(), nb::arg("b").noconvert(),
        nb::arg("values").noconvert(), nb::arg("n_threads"));
    module.def(
        "sparse_active_units",
        [](Table<T> X, Starts starts, Inputs inputs, Numbers weights, Numbers b, Numbers tolerance,
           List<std::int64_t> lower, List<std::int64_t> upper, int n_threads) {
            const Rows<T> rows{X.data(), X.shape(0), X.shape(1)};
            const SparseUnits units{starts.data(), inputs.data(), weights.data(), b.shape(0)};
            const double *thresholds = b.data(), *margin = tolerance.data();
            std::int64_t *sure = lower.data(), *possible = upper.data();
            nb::gil_scoped_release unlocked;
            SPARSACT_DISPATCH(active_units, rows, units, thresholds, margin, sure, possible, n_threads);
        },
        nb::arg("X").noconvert(), nb::arg("indptr").noconvert(), nb::arg("indices").noconvert(),
        nb::arg("weights").noconvert(), nb::arg("b").noconvert(), nb::arg("tolerance").noconvert(),
        nb::arg("lower").noconvert(), nb::arg("upper").noconvert(), nb::arg("n_threads"));
}

}  // namespace

SPARSACT_BINDINGS(module) {
    bind_rows_of<double>(module);
    bind_rows_of<float>(module);
    bind_rows_of<std::int8_t>(module);
}

}  // namespace sparsact

#endif
