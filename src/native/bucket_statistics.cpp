#include "bucket_statistics.hpp"

#ifdef SPARSACT_ISA

#include <algorithm>

#include "bucket_solver.hpp"
#include "monomials.hpp"
#include "threads.hpp"

namespace sparsact::SPARSACT_ISA {

namespace {

constexpr std::size_t AHEAD = 8;          // rows whose sums come from memory in the meantime
constexpr std::size_t CACHE_LINE = 8;     // numbers
constexpr std::size_t MOST_LINES = 16;    // asked for ahead; longer runs the processor sees by itself
constexpr std::size_t MOST_CONSTANT = 9;  // coefficients of a bucket: loops over fewer are unrolled
constexpr std::size_t GROUPS = 64;        // vectors of buckets that a task solves

void prefetch_run(const double* data, std::size_t first, std::size_t count) {
    for (std::size_t k = 0; k < std::min(count, MOST_LINES * CACHE_LINE); k += CACHE_LINE)
        prefetch(data, first + k);
    prefetch(data, first + count - 1);
}

// Adds a row to its bucket's sums; sizes are constants where they are small.
template <class Size, class Targets>
SPARSACT_INLINE void add_row(std::size_t p, Size D, Targets targets, const double* z, const double* phi,
                             const double* y, double weight, double* sums) {
    for (std::size_t j = 0; j < p; ++j) *sums++ += weight * z[j];
    double* cross = sums + D * (D + 1) / 2;
    for (std::size_t a = 0; a < D; ++a) {
        const double weighted = weight * phi[a];
        for (std::size_t b = a; b < D; ++b) *sums++ += weighted * phi[b];
        for (std::size_t t = 0; t < targets; ++t) *cross++ += weighted * y[t];
    }
    for (std::size_t t = 0; t < targets; ++t) *cross++ += (weight * y[t]) * y[t];
}

template <class Size, class Targets>
void add_rows(const BucketRows& rows, const Shape& shape, Size D, Targets targets, int sign,
              BucketSums buckets, Before before) {
    const std::size_t n_sums = shape.sums();
    Scratch<double> phi(shape.D);
    const auto bucket = [&](std::size_t row, std::size_t t) {
        return static_cast<std::size_t>(rows.ids[row * rows.tables + t]);  // negative: larger than any
    };
    for (std::size_t t = 0; t < rows.tables; ++t)
        for (std::size_t row = 0; row < rows.m; ++row) {
            if (row + AHEAD < rows.m) {
                const std::size_t next = bucket(row + AHEAD, t);
                prefetch(rows.V, rows.features(row + 2 * AHEAD, t));
                prefetch(rows.ids, (row + 4 * AHEAD) * rows.tables + t);
                prefetch_run(buckets.sums, next * n_sums, n_sums);
                prefetch(buckets.counts, next);
            }
            const std::size_t own = bucket(row, t);
            if (own >= buckets.n) continue;
            const double* v = rows.V + rows.features(row, t);
            for_each_monomial<double>(
                shape.p, rows.degree, [&](std::size_t j) { return v[j]; },
                [&](std::size_t a, double monomial) { phi[a] = monomial; });
            if (before.sums) {
                before.counts[t * rows.m + row] = buckets.counts[own];
                std::copy_n(buckets.sums + own * n_sums, n_sums, before.sums + (t * rows.m + row) * n_sums);
            }
            buckets.counts[own] += sign;
            add_row(shape.p, D, targets, rows.Z + row * shape.p, phi.data(), rows.Y + row * shape.targets,
                    sign * rows.weights[row], buckets.sums + own * n_sums);
        }
}

// Calls f with n as a constant, if it is one of 1, 2, ..., as many as asked for.
template <class F, std::size_t... less>
bool with_constant(std::size_t n, F f, std::index_sequence<less...>) {
    return ((n == less + 1 && (f(std::integral_constant<std::size_t, less + 1>{}), true)) || ...);
}

}  // namespace

void accumulate(const BucketRows& rows, int sign, BucketSums buckets, Before before) {
    const std::size_t targets = rows.targets;
    const Shape shape(rows.p, rows.degree, targets);
    const auto with = [&](auto D) {
        if (targets == 1)
            add_rows(rows, shape, D, std::integral_constant<std::size_t, 1>{}, sign, buckets, before);
        else
            add_rows(rows, shape, D, targets, sign, buckets, before);
    };
    if (!with_constant(shape.D, with, std::make_index_sequence<MOST_CONSTANT>{})) with(shape.D);
}

void solve(const double* sums, std::size_t n, std::size_t p, int degree, std::size_t targets, double alpha,
           Solved out, int n_threads) {
    const Shape shape(p, degree, targets);
    const std::size_t groups = (n + LANES - 1) / LANES, D = shape.D;
    const int threads = available_threads(n_threads);
    in_parallel(threads, (groups + GROUPS - 1) / GROUPS, [&](std::size_t task) {
        BucketSolver solver(shape, alpha);
        for (std::size_t group = task * GROUPS; group < std::min(groups, (task + 1) * GROUPS); ++group) {
            const std::size_t first = group * LANES, here = std::min(LANES, n - first);
            double lane[LANES];
            // Lanes past the last bucket repeat it.
            solver.read(sums, [&](std::size_t l) { return first + std::min(l, here - 1); });
            solver.solve();
            for (std::size_t k = 0; k < D * targets; ++k) {
                store(lane, solver.coefficient(k / targets, k % targets));
                for (std::size_t l = 0; l < here; ++l)
                    out.coefficients[(first + l) * D * targets + k] = lane[l];
            }
            for (std::size_t t = 0; t < targets; ++t) {
                store(lane, solver.residual(t));
                for (std::size_t l = 0; l < here; ++l) out.residual[(first + l) * targets + t] = lane[l];
            }
        }
    });
}

}  // namespace sparsact::SPARSACT_ISA

#else

#include "bind.hpp"
#include "bind_buckets.hpp"

namespace sparsact {

SPARSACT_BINDINGS(module) {
    module.def(
        "accumulate",
        [](Ids ids, Matrix Z, Cube V, Matrix Y, Numbers weights, int sign, int degree,
           Array<std::int64_t, 1> counts, Array<double, 2> sums, Array<std::int64_t, 1> counts_before,
           Array<double, 2> sums_before) {
            const BucketRows rows = rows_of(ids, Z, V, Y, weights, degree);
            const BucketSums buckets{counts.data(), sums.data(), sums.shape(0)};
            const Before before{counts_before.data(), sums_before.shape(0) ? sums_before.data() : nullptr};
            nb::gil_scoped_release unlocked;
            SPARSACT_DISPATCH(accumulate, rows, sign, buckets, before);
        },
        nb::arg("ids"), nb::arg("Z"), nb::arg("V"), nb::arg("Y"), nb::arg("weights"), nb::arg("sign"),
        nb::arg("degree"), nb::arg("counts").noconvert(), nb::arg("sums").noconvert(),
        nb::arg("counts_before").noconvert(), nb::arg("sums_before").noconvert());
    module.def(
        "solve",
        [](Matrix sums, std::size_t p, int degree, double alpha, Array<double, 3> coefficients,
           Array<double, 2> residual, int n_threads) {
            const double* rows = sums.data();
            const std::size_t n = sums.shape(0), targets = residual.shape(1);
            const Solved out{coefficients.data(), residual.data()};
            nb::gil_scoped_release unlocked;
            SPARSACT_DISPATCH(solve, rows, n, p, degree, targets, alpha, out, n_threads);
        },
        nb::arg("sums"), nb::arg("p"), nb::arg("degree"), nb::arg("alpha"),
        nb::arg("coefficients").noconvert(), nb::arg("residual").noconvert(), nb::arg("n_threads"));
}

}  // namespace sparsact

#endif
