#include "bucket_statistics.hpp"

#ifdef SPARSACT_ISA

#include <algorithm>

#include "bucket_solver.hpp"
#include "monomials.hpp"
#include "threads.hpp"

namespace sparsact::SPARSACT_ISA {

namespace {

constexpr std::size_t CACHE_LINE = 8;   // numbers
constexpr std::size_t MOST_LINES = 48;  // asked for ahead; longer runs the processor foresees
constexpr std::size_t GROUPS = 64;      // vectors of buckets that a task solves

void prefetch_run(const double* data, std::size_t first, std::size_t count) {
    for (std::size_t k = 0; k < std::min(count, MOST_LINES * CACHE_LINE); k += CACHE_LINE)
        prefetch(data, first + k);
    prefetch(data, first + count - 1);
}

// Rows that are added at once, one a lane.
class RowGroup {
  public:
    RowGroup(const BucketRows& rows, int sign, BucketSums buckets)
        : rows_(rows),
          shape_(rows.p, rows.degree, rows.targets),
          products_(rows.p, 2 * rows.degree),
          n_sums_(shape_.sums()),
          sign_(sign),
          buckets_(buckets),
          own_(shape_.values()) {}

    // Adds rows first, ..., to their buckets in a table, while the sums of those after them come from memory.
    void add(std::size_t first, std::size_t t) {
        const std::size_t here = std::min(LANES, rows_.m - first);
        for (std::size_t row = first + LANES; row < std::min(first + 2 * LANES, rows_.m); ++row) {
            prefetch_run(buckets_.sums, bucket(row, t) * n_sums_, n_sums_);
            prefetch(buckets_.counts, bucket(row, t));
            prefetch(rows_.V, rows_.features(row, t));
        }
        double* sums[LANES];
        bool any = false;
        for (std::size_t l = 0; l < LANES; ++l) {
            const std::size_t number = l < here ? bucket(first + l, t) : buckets_.n;
            const bool known = number < buckets_.n;
            sums[l] = known ? buckets_.sums + number * n_sums_ : nullptr;
            any |= known;
            if (known) count(buckets_.counts[number]);
        }
        if (!any) return;
        const auto row = [&](std::size_t l) { return first + std::min(l, here - 1); };
        contributions(
            shape_, products_, lanes_of([&](std::size_t l) { return sign_ * rows_.weights[row(l)]; }),
            [&](std::size_t j) {
                return lanes_of([&](std::size_t l) { return rows_.Z[row(l) * shape_.p + j]; });
            },
            [&](std::size_t j) {
                return lanes_of([&](std::size_t l) { return rows_.V[rows_.features(row(l), t) + j]; });
            },
            [&](std::size_t k) {
                return lanes_of([&](std::size_t l) { return rows_.Y[row(l) * shape_.targets + k]; });
            },
            own_.data());
        add_lanes(own_.data(), shape_, sums);
    }

    // Sums of buckets that hold no row any more are 0.
    void clear_empty() {
        for (std::size_t i = 0; i < rows_.m * rows_.tables; ++i) {
            const auto number = static_cast<std::size_t>(rows_.ids[i]);
            if (number < buckets_.n && buckets_.counts[number] == 0)
                std::fill_n(buckets_.sums + number * n_sums_, n_sums_, 0.0);
        }
    }

    std::int64_t filled() const { return filled_; }

  private:
    std::size_t bucket(std::size_t row, std::size_t t) const {
        return static_cast<std::size_t>(rows_.ids[row * rows_.tables + t]);  // negative: larger than any
    }

    void count(std::int64_t& rows) {
        filled_ += rows == 0;
        rows += sign_;
        filled_ -= rows == 0;
    }

    const BucketRows& rows_;
    const Shape shape_;
    const Products products_;
    const std::size_t n_sums_;
    const int sign_;
    const BucketSums buckets_;
    Scratch<Reals> own_;
    std::int64_t filled_ = 0;
};

}  // namespace

std::int64_t accumulate(const BucketRows& rows, int sign, BucketSums buckets) {
    RowGroup group(rows, sign, buckets);
    for (std::size_t t = 0; t < rows.tables; ++t)
        for (std::size_t first = 0; first < rows.m; first += LANES) group.add(first, t);
    if (sign < 0) group.clear_empty();
    return group.filled();
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
