#include <nanobind/ndarray.h>

#include "bind.hpp"
#include "parity_counts.hpp"

namespace nb = nanobind;

namespace sparsact {

void bind_parity_counts(nb::module_& module) {
    using Words = nb::ndarray<const std::uint64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
    using Counts = nb::ndarray<std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
    module.def(
        "parity_counts",
        [](Words columns, Words planes, Words masks, Counts counts, int n_threads) {
            const PackedColumns table{columns.data(), columns.shape(0), columns.shape(1)};
            const Family family{masks.data(), masks.shape(0), masks.shape(1)};
            const std::uint64_t* sets = planes.data();
            const std::size_t n_planes = planes.shape(0);
            std::int64_t* out = counts.data();
            nb::gil_scoped_release unlocked;
            SPARSACT_DISPATCH(parity_counts, table, sets, n_planes, family, out, n_threads);
        },
        nb::arg("columns").noconvert(), nb::arg("planes").noconvert(), nb::arg("masks").noconvert(),
        nb::arg("counts").noconvert(), nb::arg("n_threads"));
}

}  // namespace sparsact
