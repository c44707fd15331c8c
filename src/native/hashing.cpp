#include "hashing.hpp"

#ifdef SPARSACT_ISA

#include <algorithm>

#include "hashed_rows.hpp"
#include "threads.hpp"

namespace sparsact::SPARSACT_ISA {

namespace {

// Columns (n, BLOCK) as rows, `stride` apart.
template <class T>
void write_rows(const T* columns, std::size_t n, std::size_t rows, std::size_t stride, T* out) {
    for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t j = 0; j < n; ++j) out[r * stride + j] = columns[j * BLOCK + r];
}

}  // namespace

void places(const double* X, std::size_t m, const Hashes& hashes, Places found, int n_threads) {
    const std::size_t blocks = (m + BLOCK - 1) / BLOCK, p = hashes.p, T = hashes.tables;
    const auto threads = static_cast<std::size_t>(available_threads(n_threads));
    const std::size_t tasks = std::min(blocks, threads);
    in_parallel(static_cast<int>(threads), tasks, [&](std::size_t task) {
        HashedRows rows(hashes);
        Scratch<double> features(p * BLOCK);
        alignas(64) std::uint64_t keys[BLOCK];
        for (std::size_t block = task * blocks / tasks; block < (task + 1) * blocks / tasks; ++block) {
            const std::size_t first = block * BLOCK, height = std::min(BLOCK, m - first);
            rows.read(X + first * hashes.d, height);
            write_rows(rows.Z(), p, height, p, found.Z + first * p);
            if (!hashes.grid) write_rows(rows.Z(), p, height, p, found.V + first * p);
            for (std::size_t t = 0; t < T; ++t) {
                rows.hash(t, keys, features.data());
                write_rows(keys, 1, height, T, found.keys + first * T + t);
                if (hashes.grid) write_rows(features.data(), p, height, T * p, found.V + (first * T + t) * p);
            }
        }
    });
}

void row_keys(const std::uint64_t* rows, std::size_t m, std::size_t n, std::uint64_t* keys) {
    std::size_t row = 0;
    // Several rows side by side: a row's own products wait for each other.
    const auto together = [&](auto some) {
        constexpr std::size_t height = decltype(some)::value;
        for (; row + height <= m; row += height) {
            std::uint64_t key[height];
            std::fill_n(key, height, STEP);
            for (std::size_t j = 0; j < n; ++j)
                for (std::size_t r = 0; r < height; ++r) key[r] = mixed(key[r], rows[(row + r) * n + j]);
            for (std::size_t r = 0; r < height; ++r) keys[row + r] = finished(key[r]);
        }
    };
    together(std::integral_constant<std::size_t, 8>{});
    together(std::integral_constant<std::size_t, 1>{});
}

}  // namespace sparsact::SPARSACT_ISA

#else

#include "bind.hpp"
#include "bind_buckets.hpp"

namespace sparsact {

SPARSACT_BINDINGS(module) {
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

#endif
