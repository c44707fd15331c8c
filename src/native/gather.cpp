// Products with the few rows of a matrix that each input selects.
//
// The order of every sum is fixed: that of a dot product runs through PARTIAL_BYTES of partial sums side by
// side, which are then added in halves; rows are added in the order selected. Every instruction set and
// number of threads gives the same bits.
#include <cstddef>
#include <cstdint>

#include "halves.hpp"
#include "isa.hpp"

namespace sparsact {

struct Places {
    const std::int64_t* rows;  // (m, k), less than t; -1: none
    std::size_t m, k, t;
};

SPARSACT_DECLARE(
    // dots (m, k): <X[i], W[rows[i, j]]>, for X (m, n) and W (t, n); 0 at places without a row.
    template <class T>
    void gather_dot(const T* X, const T* W, std::size_t n, Places places, T* dots, int n_threads);

    // sums (m, n): sum_j A[i, j] V[rows[i, j]], for A (m, k) and V (t, n).
    template <class T>
    void gather_sum(const T* A, const T* V, std::size_t n, Places places, T* sums, int n_threads);

    // Rows of sums (t, n) that a place names: the sum of A[i, j] X[i] over the places that name it, for A (m,
    // k) and X (m, n). Other rows are left as they are.
    template <class T>
    void scatter_outer(const T* A, const T* X, std::size_t n, Places places, T* sums, int n_threads);)

}  // namespace sparsact

#ifdef SPARSACT_ISA

#include <algorithm>
#include <vector>

#include "rows.hpp"
#include "scratch.hpp"
#include "threads.hpp"

namespace sparsact::SPARSACT_ISA {

namespace {

constexpr std::size_t READS = 4;  // of a matrix at the least, before its rows are read in order

// Places in the order of the rows they name, and where each row's begin.
struct PlacesByRow {
    explicit PlacesByRow(const Places& places) : starts(places.t + 1) {
        const std::size_t count = places.m * places.k;
        for (std::size_t p = 0; p < count; ++p)
            if (places.rows[p] >= 0) ++starts[static_cast<std::size_t>(places.rows[p]) + 1];
        for (std::size_t r = 0; r < places.t; ++r) starts[r + 1] += starts[r];
        order.resize(starts[places.t]);
        std::vector<std::size_t> next(starts.begin(), starts.end() - 1);
        for (std::size_t p = 0; p < count; ++p)
            if (places.rows[p] >= 0) order[next[static_cast<std::size_t>(places.rows[p])]++] = p;
    }

    std::vector<std::size_t> starts, order;  // (t + 1,), (places with a row,)
};

// Fills `out` (n,) with what f adds to a sum of rows, in `wide`, which stands on a cache line.
template <class T, class F>
SPARSACT_INLINE void fill_sum(T* out, Real<T>* wide, std::size_t n, F f) {
    std::fill_n(wide, n, Real<T>{});
    RowSum<T> sum(wide, n);
    f(sum);
    sum.finish();
    for (std::size_t i = 0; i < n; ++i) narrow(wide[i], out + i);
}

}  // namespace

template <class T>
void gather_dot(const T* X, const T* W, std::size_t n, Places places, T* dots, int n_threads) {
    const std::size_t count = places.m * places.k;
    const auto put = [dots](std::size_t p, Real<T> value) { narrow(value, dots + p); };
    const auto fill = [&](std::size_t begin, std::size_t end, auto place) {
        Dots<T, T, decltype(put)> waiting(n, put);
        for (std::size_t q = begin; q < end; ++q) {
            const std::size_t p = place(q);
            if (places.rows[p] < 0)
                dots[p] = T{};
            else
                waiting.add(X + p / places.k * n, W + static_cast<std::size_t>(places.rows[p]) * n, p);
        }
        waiting.finish();
    };
    if (count < READS * places.t) {
        in_shares(n_threads, count, [&](std::size_t begin, std::size_t end) {
            fill(begin, end, [](std::size_t p) { return p; });
        });
        return;
    }
    std::fill_n(dots, count, T{});
    const PlacesByRow by_row(places);
    in_shares(n_threads, by_row.order.size(), [&](std::size_t begin, std::size_t end) {
        fill(begin, end, [&](std::size_t q) { return by_row.order[q]; });
    });
}

template <class T>
void gather_sum(const T* A, const T* V, std::size_t n, Places places, T* sums, int n_threads) {
    in_shares(n_threads, places.m, [&](std::size_t begin, std::size_t end) {
        Scratch<Real<T>> wide(n);
        for (std::size_t i = begin; i < end; ++i)
            fill_sum(sums + i * n, wide.data(), n, [&](RowSum<T>& sum) {
                for (std::size_t p = i * places.k; p < (i + 1) * places.k; ++p)
                    if (places.rows[p] >= 0)
                        sum.add(widened(A[p]), V + static_cast<std::size_t>(places.rows[p]) * n);
            });
    });
}

template <class T>
void scatter_outer(const T* A, const T* X, std::size_t n, Places places, T* sums, int n_threads) {
    const PlacesByRow by_row(places);
    in_shares(n_threads, places.t, [&](std::size_t begin, std::size_t end) {
        Scratch<Real<T>> wide(n);
        for (std::size_t r = begin; r < end; ++r)
            if (by_row.starts[r] < by_row.starts[r + 1])
                fill_sum(sums + r * n, wide.data(), n, [&](RowSum<T>& sum) {
                    for (std::size_t q = by_row.starts[r]; q < by_row.starts[r + 1]; ++q)
                        sum.add(widened(A[by_row.order[q]]), X + by_row.order[q] / places.k * n);
                });
    });
}

#define SPARSACT_INSTANTIATE(T)                                                 \
    template void gather_dot(const T*, const T*, std::size_t, Places, T*, int); \
    template void gather_sum(const T*, const T*, std::size_t, Places, T*, int); \
    template void scatter_outer(const T*, const T*, std::size_t, Places, T*, int);
SPARSACT_INSTANTIATE(double)
SPARSACT_INSTANTIATE(float)
SPARSACT_INSTANTIATE(Bfloat16)

}  // namespace sparsact::SPARSACT_ISA

#else

#include "bind.hpp"

namespace sparsact {

namespace {

template <class T>
using Table = Array<T, 2>;
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

SPARSACT_BINDINGS(module) {
    bind_gather_of<double>(module);
    bind_gather_of<float>(module);
    bind_gather_of<std::uint16_t>(module);
}

}  // namespace sparsact

#endif
