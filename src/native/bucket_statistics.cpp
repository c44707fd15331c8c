#include "bucket_statistics.hpp"

#ifdef SPARSACT_ISA

#include <algorithm>

#include "bucket_solver.hpp"
#include "monomials.hpp"
#include "threads.hpp"

namespace sparsact::SPARSACT_ISA {

namespace {

constexpr std::size_t AHEAD = 4;         // rows whose sums come from memory in the meantime
constexpr std::size_t CACHE_LINE = 8;    // numbers
constexpr std::size_t MOST_LINES = 48;   // asked for ahead; longer runs the processor sees by itself
constexpr std::size_t GROUPS = 64;       // vectors of buckets that a task solves

void prefetch_run(const double* data, std::size_t first, std::size_t count) {
    for (std::size_t k = 0; k < std::min(count, MOST_LINES * CACHE_LINE); k += CACHE_LINE)
        prefetch(data, first + k);
    prefetch(data, first + count - 1);
}

// What a row adds to the sums of a bucket. `own` has room for a vector more: each product is a few vectors long,
// and what the last of them writes too much is written over by the next product.
SPARSACT_INLINE void contributions(const Shape& shape, int degree, const double* z, const double* v,
                                   const double* y, double weight, double* own) {
    for (std::size_t j = 0; j < shape.p; ++j) own[j] = weight * z[j];
    double* monomials = own + shape.monomial(0);
    monomials[0] = weight;
    if (degree)
        for (std::size_t j = 0; j < shape.p; ++j) monomials[1 + j] = weight * v[j];
    for_each_product(shape.p, 2 * degree,
                     [&](std::size_t j, std::size_t source, std::size_t first, std::size_t count) {
                         for (std::size_t k = 0; k < count; k += LANES)
                             store(monomials + first + k, v[j] * load<Reals>(monomials + source + k));
                     });
    double* cross = own + shape.cross(0, 0);
    for (std::size_t a = 0; a < shape.D; ++a)
        for (std::size_t t = 0; t < shape.targets; ++t) *cross++ = monomials[a] * y[t];
    for (std::size_t t = 0; t < shape.targets; ++t) *cross++ = (weight * y[t]) * y[t];
}

SPARSACT_INLINE void add_to(double* sums, const double* own, std::size_t n) {
    std::size_t k = 0;
    for (; k + LANES <= n; k += LANES) store(sums + k, load<Reals>(sums + k) + load<Reals>(own + k));
    for (; k < n; ++k) sums[k] += own[k];
}

}  // namespace

std::int64_t accumulate(const BucketRows& rows, int sign, BucketSums buckets) {
    const Shape shape(rows.p, rows.degree, rows.targets);
    const std::size_t n_sums = shape.sums();
    Scratch<double> own(n_sums + LANES);
    std::fill_n(own.data(), n_sums + LANES, 0.0);
    std::int64_t filled = 0;
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
            const std::size_t number = bucket(row, t);
            if (number >= buckets.n) continue;
            filled += buckets.counts[number] == 0;
            buckets.counts[number] += sign;
            filled -= buckets.counts[number] == 0;
            contributions(shape, rows.degree, rows.Z + row * shape.p, rows.V + rows.features(row, t),
                          rows.Y + row * shape.targets, sign * rows.weights[row], own.data());
            add_to(buckets.sums + number * n_sums, own.data(), n_sums);
        }
    for (std::size_t i = 0; sign < 0 && i < rows.m * rows.tables; ++i) {
        const auto number = static_cast<std::size_t>(rows.ids[i]);
        if (number < buckets.n && buckets.counts[number] == 0)
            std::fill_n(buckets.sums + number * n_sums, n_sums, 0.0);
    }
    return filled;
}

void solve(const double* sums, std::size_t n, std::size_t p, int degree, std::size_t targets, double alpha,
           Solved out, int n_threads) {
    const Shape shape(p, degree, targets);
    const std::size_t groups = (n + LANES - 1) / LANES, D = shape.D;
    const int threads = available_threads(n_threads);
    in_parallel(threads, (groups + GROUPS - 1) / GROUPS, [&](std::size_t task) {
        BucketSolver solver(shape, degree, alpha);
        for (std::size_t group = task * GROUPS; group < std::min(groups, (task + 1) * GROUPS); ++group) {
            const std::size_t first = group * LANES, here = std::min(LANES, n - first);
            double lane[LANES];
            // Lanes past the last bucket repeat it.
            const double* from[LANES];
            for (std::size_t l = 0; l < LANES; ++l)
                from[l] = sums + (first + std::min(l, here - 1)) * shape.sums();
            solver.read(from);
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
           Array<std::int64_t, 1> counts, Array<double, 2> sums) {
            const BucketRows rows = rows_of(ids, Z, V, Y, weights, degree);
            const BucketSums buckets{counts.data(), sums.data(), sums.shape(0)};
            nb::gil_scoped_release unlocked;
            return SPARSACT_DISPATCH(accumulate, rows, sign, buckets);
        },
        nb::arg("ids"), nb::arg("Z"), nb::arg("V"), nb::arg("Y"), nb::arg("weights"), nb::arg("sign"),
        nb::arg("degree"), nb::arg("counts").noconvert(), nb::arg("sums").noconvert());
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
