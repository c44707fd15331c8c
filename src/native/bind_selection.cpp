#include <nanobind/ndarray.h>

#include "bind.hpp"
#include "selection.hpp"

namespace nb = nanobind;

namespace sparsact {

namespace {

template <class T>
using Table = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class T>
void bind_values_of(nb::module_& module) {
    module.def(
        "top_k",
        [](Table<const T> values, std::size_t k, bool absolute, Table<std::int64_t> places, int n_threads) {
            const Choice<T> choice{values.data(), values.shape(0), values.shape(1), k, absolute};
            std::int64_t* out = places.data();
            nb::gil_scoped_release unlocked;
            SPARSACT_DISPATCH(top_k, choice, out, n_threads);
        },
        nb::arg("values").noconvert(), nb::arg("k"), nb::arg("absolute"), nb::arg("places").noconvert(),
        nb::arg("n_threads"));
    module.def(
        "top_k_dot",
        [](Table<const T> values, Table<const T> A, std::size_t k, bool absolute, Table<T> dots,
           int n_threads) {
            const Choice<T> choice{values.data(), values.shape(0), values.shape(1), k, absolute};
            const T* rows = A.data();
            const std::size_t targets = A.shape(0);
            T* out = dots.data();
            nb::gil_scoped_release unlocked;
            SPARSACT_DISPATCH(top_k_dot, choice, rows, targets, out, n_threads);
        },
        nb::arg("values").noconvert(), nb::arg("A").noconvert(), nb::arg("k"), nb::arg("absolute"),
        nb::arg("dots").noconvert(), nb::arg("n_threads"));
    module.def(
        "top_k_masked",
        [](Table<const T> values, std::size_t k, bool absolute, Table<T> masked, int n_threads) {
            const Choice<T> choice{values.data(), values.shape(0), values.shape(1), k, absolute};
            T* out = masked.data();
            nb::gil_scoped_release unlocked;
            SPARSACT_DISPATCH(top_k_masked, choice, out, n_threads);
        },
        nb::arg("values").noconvert(), nb::arg("k"), nb::arg("absolute"), nb::arg("masked").noconvert(),
        nb::arg("n_threads"));
}

}  // namespace

void bind_selection(nb::module_& module) {
    bind_values_of<float>(module);
    bind_values_of<double>(module);
}

}  // namespace sparsact
