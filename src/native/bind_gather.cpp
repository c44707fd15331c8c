#include <nanobind/ndarray.h>

#include "bind.hpp"
#include "gather.hpp"

namespace nb = nanobind;

namespace sparsact {

namespace {

template <class T>
using Table = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Indices = Table<const std::int64_t>;

// bfloat16 comes as uint16, which NumPy has.
template <class T>
struct stored_as {
    using type = T;
};
template <>
struct stored_as<std::uint16_t> {
    using type = Bfloat16;
};

template <class N, class T = typename stored_as<N>::type>
void bind_gather_of(nb::module_& module) {
    const auto bind = [&](const char* name, auto f, const char* first, const char* second, const char* out) {
        module.def(name, f, nb::arg(first).noconvert(), nb::arg(second).noconvert(),
                   nb::arg("indices").noconvert(), nb::arg(out).noconvert(), nb::arg("n_threads"));
    };
    bind(
        "gather_dot",
        [](Table<const N> X, Table<const N> W, Indices indices, Table<N> dots, int n_threads) {
            const Places places{indices.data(), indices.shape(0), indices.shape(1), W.shape(0)};
            const T *x = reinterpret_cast<const T*>(X.data()), *w = reinterpret_cast<const T*>(W.data());
            T* out = reinterpret_cast<T*>(dots.data());
            const std::size_t n = X.shape(1);
            nb::gil_scoped_release unlocked;
            SPARSACT_DISPATCH(gather_dot, x, w, n, places, out, n_threads);
        },
        "X", "W", "dots");
    bind(
        "gather_sum",
        [](Table<const N> A, Table<const N> V, Indices indices, Table<N> sums, int n_threads) {
            const Places places{indices.data(), indices.shape(0), indices.shape(1), V.shape(0)};
            const T *a = reinterpret_cast<const T*>(A.data()), *v = reinterpret_cast<const T*>(V.data());
            T* out = reinterpret_cast<T*>(sums.data());
            const std::size_t n = V.shape(1);
            nb::gil_scoped_release unlocked;
            SPARSACT_DISPATCH(gather_sum, a, v, n, places, out, n_threads);
        },
        "A", "V", "sums");
    bind(
        "scatter_outer",
        [](Table<const N> A, Table<const N> X, Indices indices, Table<N> sums, int n_threads) {
            const Places places{indices.data(), indices.shape(0), indices.shape(1), sums.shape(0)};
            const T *a = reinterpret_cast<const T*>(A.data()), *x = reinterpret_cast<const T*>(X.data());
            T* out = reinterpret_cast<T*>(sums.data());
            const std::size_t n = X.shape(1);
            nb::gil_scoped_release unlocked;
            SPARSACT_DISPATCH(scatter_outer, a, x, n, places, out, n_threads);
        },
        "A", "X", "sums");
}

}  // namespace

void bind_gather(nb::module_& module) {
    bind_gather_of<double>(module);
    bind_gather_of<float>(module);
    bind_gather_of<std::uint16_t>(module);
}

}  // namespace sparsact
