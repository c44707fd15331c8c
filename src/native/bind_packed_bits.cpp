#include <nanobind/ndarray.h>

#include <cmath>
#include <limits>

#include "bind.hpp"
#include "packed_bits.hpp"

namespace nb = nanobind;

namespace sparsact {

namespace {

using Words = nb::ndarray<std::uint64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using ConstWords = nb::ndarray<const std::uint64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class T>
Value<T> value_of(double value) {
    using Limits = std::numeric_limits<T>;
    if constexpr (!Limits::is_integer) return {static_cast<T>(value), true};
    // The largest int64 is no double; max / 2 + 1 is a power of two, so this bound is exact.
    const double bound = 2.0 * static_cast<double>(Limits::max() / 2 + 1);
    const bool exists =
        value >= static_cast<double>(Limits::lowest()) && value < bound && value == std::floor(value);
    return {exists ? static_cast<T>(value) : T{0}, exists};
}

template <class T>
void bind_pack_columns(nb::module_& module) {
    module.def(
        "pack_columns",
        [](nb::ndarray<const T, nb::ndim<2>, nb::device::cpu> X, double zero, double one, Words columns) {
            const Table<T> table{X.data(), X.shape(0), X.shape(1), X.stride(0), X.stride(1)};
            std::uint64_t* data = columns.data();
            nb::gil_scoped_release unlocked;
            return SPARSACT_DISPATCH(pack_columns, table, value_of<T>(zero), value_of<T>(one), data);
        },
        nb::arg("X").noconvert(), nb::arg("zero"), nb::arg("one"), nb::arg("columns").noconvert());
}

}  // namespace

void bind_packed_bits(nb::module_& module) {
    bind_pack_columns<double>(module);
    bind_pack_columns<float>(module);
    bind_pack_columns<std::int64_t>(module);
    bind_pack_columns<std::int32_t>(module);
    bind_pack_columns<std::int8_t>(module);
    bind_pack_columns<std::uint8_t>(module);
    module.def(
        "transpose_bits",
        [](ConstWords columns, Words rows) {
            const std::uint64_t* from = columns.data();
            std::uint64_t* to = rows.data();
            const std::size_t n = columns.shape(0), m = rows.shape(0);
            nb::gil_scoped_release unlocked;
            SPARSACT_DISPATCH(transpose_bits, from, n, m, to);
        },
        nb::arg("columns").noconvert(), nb::arg("rows").noconvert());
}

}  // namespace sparsact
