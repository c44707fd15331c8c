#include <nanobind/ndarray.h>

#include "bind.hpp"
#include "subset_rank.hpp"

namespace nb = nanobind;

namespace sparsact {

void bind_subset_rank(nb::module_& module) {
    using Words = nb::ndarray<const std::uint64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
    using Masks = nb::ndarray<std::uint64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
    using Moments = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
    using Gram = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
    module.def(
        "subsets_in_order",
        [](std::size_t n, std::size_t size, Masks masks) {
            std::uint64_t* out = masks.data();
            const std::size_t words = masks.shape(1);
            nb::gil_scoped_release unlocked;
            subsets_in_order(n, size, words, out);
        },
        nb::arg("n"), nb::arg("size"), nb::arg("masks").noconvert());
    module.def(
        "ranked_gram",
        [](Words masks, Moments moments, std::size_t n, std::size_t size, Gram gram, int n_threads) {
            const Family family{masks.data(), masks.shape(0), masks.shape(1)};
            const double* values = moments.data();
            double* out = gram.data();
            nb::gil_scoped_release unlocked;
            ranked_gram(family, values, n, size, out, n_threads);
        },
        nb::arg("masks").noconvert(), nb::arg("moments").noconvert(), nb::arg("n"), nb::arg("size"),
        nb::arg("gram").noconvert(), nb::arg("n_threads"));
}

}  // namespace sparsact
