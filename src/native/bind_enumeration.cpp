#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>

#include "bind.hpp"
#include "enumeration.hpp"

namespace nb = nanobind;

namespace sparsact {

void bind_enumeration(nb::module_& module) {
    using Weights = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
    using Numbers = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
    using Histograms = nb::ndarray<std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
    module.def(
        "count_active",
        [](Weights W, Numbers b, Numbers tolerance, Histograms histograms, int n_threads) {
            const CubeUnits units{W.data(), b.data(), tolerance.data(), W.shape(0), W.shape(1)};
            std::int64_t* counted = histograms.data();
            nb::gil_scoped_release unlocked;
            const Witnesses found = SPARSACT_DISPATCH(count_active, units, counted, n_threads);
            return std::pair(found.lower, found.upper);
        },
        nb::arg("W").noconvert(), nb::arg("b").noconvert(), nb::arg("tolerance").noconvert(),
        nb::arg("histograms").noconvert(), nb::arg("n_threads"));
}

}  // namespace sparsact
