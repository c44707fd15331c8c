#include <nanobind/ndarray.h>

#include "bind.hpp"
#include "symmetric_differences.hpp"

namespace nb = nanobind;

namespace sparsact {

void bind_symmetric_differences(nb::module_& module) {
    using Words = nb::ndarray<const std::uint64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
    using Positions = nb::ndarray<std::int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
    module.def(
        "symmetric_differences",
        [](Words masks, Positions position) {
            const Family family{masks.data(), masks.shape(0), masks.shape(1)};
            std::int32_t* places = position.data();
            MaskArray unique;
            {
                nb::gil_scoped_release unlocked;
                unique = symmetric_differences(family, places);
            }
            std::uint64_t* data = unique.data.release();
            nb::capsule owner(data,
                              [](void* words) noexcept { delete[] static_cast<std::uint64_t*>(words); });
            return nb::ndarray<nb::numpy, std::uint64_t, nb::ndim<2>>(data, {unique.size, family.words},
                                                                      owner);
        },
        nb::arg("masks").noconvert(), nb::arg("position").noconvert());
}

}  // namespace sparsact
