#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <optional>

#include "bind.hpp"
#include "exact.hpp"

namespace nb = nanobind;

namespace sparsact {

using Values = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Index = nb::ndarray<const std::uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Limbs = nb::ndarray<std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void bind_exact(nb::module_& module) {
    module.def("exponent_range", [](Values values) {
        const Exponents range = exponent_range(values.data(), values.shape(0));
        return std::pair<int, int>(range.low, range.high);
    });
    module.def(
        "add_products",
        [](Limbs limbs, int base, std::optional<Index> index, Values a, std::optional<Values> b,
           std::optional<Values> c) {
            const std::uint64_t* at = index ? index->data() : nullptr;
            const double* times = b ? b->data() : nullptr;
            const double* again = c ? c->data() : nullptr;
            nb::gil_scoped_release unlocked;
            add_products(limbs.data(), limbs.shape(0), limbs.shape(1), base, at, a.data(), times, again,
                         a.shape(0));
        },
        nb::arg("limbs").noconvert(), nb::arg("base"), nb::arg("index").none(), nb::arg("a"),
        nb::arg("b").none(), nb::arg("c").none());
}

}  // namespace sparsact
