#include "bind.hpp"
#include "bind_buckets.hpp"
#include "bucket_statistics.hpp"
#include "leave_one_out.hpp"

namespace nb = nanobind;

namespace sparsact {

namespace {

using Ids = Array<const std::int32_t, 2>;

BucketRows rows_of(const Ids& ids, const Matrix& Z, const Cube& V, const Matrix& Y, const Numbers& weights,
                   int degree) {
    const bool apart = V.shape(1) == ids.shape(1);
    return {ids.data(),   Z.data(), V.data(),   Y.data(),   weights.data(), ids.shape(0),
            ids.shape(1), apart,    Z.shape(1), Y.shape(1), degree};
}

}  // namespace

void bind_bucket_statistics(nb::module_& module) {
    module.def(
        "accumulate",
        [](Ids ids, Matrix Z, Cube V, Matrix Y, Numbers weights, int sign, int degree,
           Array<std::int64_t, 1> counts, Array<double, 2> sums) {
            const BucketRows rows = rows_of(ids, Z, V, Y, weights, degree);
            const BucketSums buckets{counts.data(), sums.data(), sums.shape(0)};
            nb::gil_scoped_release unlocked;
            SPARSACT_DISPATCH(accumulate, rows, sign, buckets);
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
    module.def(
        "leave_one_out",
        [](Ids ids, Matrix Z, Cube V, Matrix Y, Numbers weights, int degree, double alpha, std::int64_t least,
           Array<const std::int64_t, 1> counts, Matrix sums, Array<double, 2> values, Array<double, 1> total,
           int n_threads) {
            const BucketRows rows = rows_of(ids, Z, V, Y, weights, degree);
            const HeldSums buckets{counts.data(), sums.data(), sums.shape(0)};
            double *out = values.data(), *behind = total.data();
            nb::gil_scoped_release unlocked;
            SPARSACT_DISPATCH(leave_one_out, rows, alpha, least, buckets, out, behind, n_threads);
        },
        nb::arg("ids"), nb::arg("Z"), nb::arg("V"), nb::arg("Y"), nb::arg("weights"), nb::arg("degree"),
        nb::arg("alpha"), nb::arg("least"), nb::arg("counts"), nb::arg("sums"), nb::arg("values").noconvert(),
        nb::arg("total").noconvert(), nb::arg("n_threads"));
}

}  // namespace sparsact
