#include <nanobind/ndarray.h>

#include "bind.hpp"
#include "network_values.hpp"

namespace nb = nanobind;

namespace sparsact {

namespace {

template <class T>
using List = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Table = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
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

void bind_network_values(nb::module_& module) {
    bind_rows_of<double>(module);
    bind_rows_of<float>(module);
    bind_rows_of<std::int8_t>(module);
}

}  // namespace sparsact
