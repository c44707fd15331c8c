#include "bind.hpp"
#include "bind_buckets.hpp"

namespace nb = nanobind;

namespace sparsact {

void bind_hashing(nb::module_& module) {
    module.def(
        "places",
        [](Matrix X, Numbers centre, Matrix local, Matrix directions, Numbers offsets, Keys seeds, bool grid,
           bool signs, Array<double, 2> Z, Array<double, 3> V, Array<std::uint64_t, 2> keys, int n_threads) {
            const Hashes hashes = hashes_of(centre, local, directions, offsets, seeds, grid, signs);
            const Places found{Z.data(), V.data(), keys.data()};
            const double* rows = X.data();
            const std::size_t m = X.shape(0);
            nb::gil_scoped_release unlocked;
            SPARSACT_DISPATCH(places, rows, m, hashes, found, n_threads);
        },
        nb::arg("X").noconvert(), nb::arg("centre"), nb::arg("local"), nb::arg("directions"),
        nb::arg("offsets"), nb::arg("seeds"), nb::arg("grid"), nb::arg("signs"), nb::arg("Z").noconvert(),
        nb::arg("V").noconvert(), nb::arg("keys").noconvert(), nb::arg("n_threads"));
    module.def(
        "row_keys",
        [](Array<const std::uint64_t, 2> rows, Array<std::uint64_t, 1> keys) {
            const std::uint64_t* words = rows.data();
            const std::size_t m = rows.shape(0), n = rows.shape(1);
            std::uint64_t* out = keys.data();
            nb::gil_scoped_release unlocked;
            SPARSACT_DISPATCH(row_keys, words, m, n, out);
        },
        nb::arg("rows").noconvert(), nb::arg("keys").noconvert());
}

}  // namespace sparsact
