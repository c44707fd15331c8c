#include "bind.hpp"
#include "bind_buckets.hpp"
#include "bucket_index.hpp"

namespace nb = nanobind;

namespace sparsact {

void bind_bucket_index(nb::module_& module) {
    using OwnSlots = Array<std::uint64_t, 2>;
    using OwnKeys = Array<std::uint64_t, 1>;
    using Ids = Array<std::int32_t, 1>;
    module.def(
        "find",
        [](Array<const std::uint64_t, 2> slots, Keys keys, Ids ids) {
            const Slots open{slots.data(), slots.shape(0)};
            const std::uint64_t* wanted = keys.data();
            const std::size_t m = keys.shape(0);
            std::int32_t* out = ids.data();
            nb::gil_scoped_release unlocked;
            find(open, wanted, m, out);
        },
        nb::arg("slots").noconvert(), nb::arg("keys").noconvert(), nb::arg("ids").noconvert());
    module.def(
        "insert",
        [](OwnSlots slots, OwnKeys bucket_keys, std::size_t n_buckets, Keys keys, Ids ids) {
            const OpenSlots open{slots.data(), slots.shape(0)};
            std::uint64_t* known = bucket_keys.data();
            const std::uint64_t* wanted = keys.data();
            const std::size_t m = keys.shape(0);
            std::int32_t* out = ids.data();
            nb::gil_scoped_release unlocked;
            return insert(open, known, n_buckets, wanted, m, out);
        },
        nb::arg("slots").noconvert(), nb::arg("bucket_keys").noconvert(), nb::arg("n_buckets"),
        nb::arg("keys").noconvert(), nb::arg("ids").noconvert());
    module.def(
        "fill",
        [](OwnSlots slots, Keys bucket_keys, std::size_t start, std::size_t stop) {
            const OpenSlots open{slots.data(), slots.shape(0)};
            const std::uint64_t* known = bucket_keys.data();
            nb::gil_scoped_release unlocked;
            fill(open, known, start, stop);
        },
        nb::arg("slots").noconvert(), nb::arg("bucket_keys").noconvert(), nb::arg("start"), nb::arg("stop"));
}

}  // namespace sparsact
