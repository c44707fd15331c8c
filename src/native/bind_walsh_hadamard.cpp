#include <nanobind/ndarray.h>

#include "bind.hpp"
#include "walsh_hadamard.hpp"

namespace nb = nanobind;

namespace sparsact {

namespace {

template <class T>
void bind_for(nb::module_& module) {
    using Table = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
    module.def(
        "walsh_hadamard",
        [](Table table, int n_threads) {
            T* data = table.data();
            const std::size_t rows = table.shape(0), length = table.shape(1);
            nb::gil_scoped_release unlocked;
            SPARSACT_DISPATCH(walsh_hadamard, data, rows, length, n_threads);
        },
        nb::arg("table").noconvert(), nb::arg("n_threads"));
}

}  // namespace

void bind_walsh_hadamard(nb::module_& module) {
    bind_for<float>(module);
    bind_for<double>(module);
    bind_for<std::int32_t>(module);
    bind_for<std::int64_t>(module);
}

}  // namespace sparsact
