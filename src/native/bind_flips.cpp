#include <nanobind/ndarray.h>

#include "bind.hpp"
#include "flips.hpp"

namespace nb = nanobind;

namespace sparsact {

namespace {

template <class T>
using List = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Table = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Signs = Table<const std::int8_t>;
using Reals = Table<const double>;

PointsAndUnits points_of(const Signs& X, const Reals& Z, const List<double>& u, const List<double>& reach) {
    return {X.data(), Z.data(), u.data(), reach.data(), X.shape(0), X.shape(1), u.shape(0)};
}

}  // namespace

void bind_flips(nb::module_& module) {
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
