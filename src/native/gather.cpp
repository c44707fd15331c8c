#include "gather.hpp"

#include <algorithm>
#include <vector>

#include "scratch.hpp"
#include "threads.hpp"

namespace sparsact::SPARSACT_ISA {

namespace {

constexpr std::size_t LINE = 64;  // bytes of the cache
constexpr int ROWS_AT_ONCE = 4;   // whose sum is loaded and stored once
constexpr std::size_t READS = 4;  // of a matrix at the least, before its rows are read in order

// Calls f(begin, end) with a share of `size` for each thread.
template <class F>
void in_shares(int n_threads, std::size_t size, F f) {
    const std::size_t tasks = std::min(size, static_cast<std::size_t>(available_threads(n_threads)));
    in_parallel(static_cast<int>(tasks), tasks,
                [&](std::size_t task) { f(task * size / tasks, (task + 1) * size / tasks); });
}

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

// <x, w>; `next` is the row that will be asked for after w.
template <class T>
SPARSACT_INLINE Real<T> dot(const T* x, const T* w, std::size_t n, const T* next) {
    constexpr std::size_t partials = PARTIAL_BYTES / sizeof(Real<T>), width = lanes<Real<T>>,
                          vectors = partials / width;
    Vector<Real<T>> sums[vectors] = {};
    std::size_t i = 0;
    for (; i + partials <= n; i += partials) {
        for (std::size_t ahead = 0; ahead < partials * sizeof(T); ahead += LINE)
            prefetch(next, i + ahead / sizeof(T));
        for (std::size_t v = 0; v < vectors; ++v)
            sums[v] += load_reals(x + i + v * width) * load_reals(w + i + v * width);
    }
    Real<T> partial[partials];
    for (std::size_t v = 0; v < vectors; ++v) store(partial + v * width, sums[v]);
    for (std::size_t p = 0; i < n; ++i, ++p) partial[p] += widened(x[i]) * widened(w[i]);
    for (std::size_t half = partials / 2; half; half /= 2)
        for (std::size_t p = 0; p < half; ++p) partial[p] += partial[p + half];
    return partial[0];
}

// A sum of rows, each times a number; rows wait until there are enough of them to be added at once.
template <class T>
class RowSum {
  public:
    RowSum(Real<T>* sums, std::size_t n) : sums_(sums), n_(n) { std::fill_n(sums, n, Real<T>{}); }

    SPARSACT_INLINE void add(T a, const T* row) {
        a_[waiting_] = widened(a);
        rows_[waiting_] = row;
        prefetch(row, 0);
        if (++waiting_ == ROWS_AT_ONCE) add_rows<ROWS_AT_ONCE>(0);
    }

    void finish() {
        const int waiting = waiting_;
        for (int r = 0; r < waiting; ++r) add_rows<1>(r);
    }

  private:
    template <int count>
    SPARSACT_INLINE void add_rows(int first) {
        constexpr std::size_t width = lanes<Real<T>>;
        const T* rows[count];
        Real<T> a[count];
        for (int r = 0; r < count; ++r) rows[r] = rows_[first + r], a[r] = a_[first + r];
        std::size_t i = 0;
        for (; i + width <= n_; i += width) {
            auto sum = load<Vector<Real<T>>>(sums_ + i);
            for (int r = 0; r < count; ++r) sum += a[r] * load_reals(rows[r] + i);
            store(sums_ + i, sum);
        }
        for (; i < n_; ++i)
            for (int r = 0; r < count; ++r) sums_[i] += a[r] * widened(rows[r][i]);
        waiting_ = 0;
    }

    Real<T>* sums_;
    std::size_t n_;
    const T* rows_[ROWS_AT_ONCE];
    Real<T> a_[ROWS_AT_ONCE];
    int waiting_ = 0;
};

// Fills `out` (n,) with what f adds to a sum of rows; numbers that are stored narrow are added in `wide`.
template <class T, class F>
SPARSACT_INLINE void fill_sum(T* out, [[maybe_unused]] Real<T>* wide, std::size_t n, F f) {
    if constexpr (std::is_same_v<T, Real<T>>) {
        RowSum<T> sum(out, n);
        f(sum);
        sum.finish();
    } else {
        RowSum<T> sum(wide, n);
        f(sum);
        sum.finish();
        for (std::size_t i = 0; i < n; ++i) narrow(wide[i], out + i);
    }
}

}  // namespace

template <class T>
void gather_dot(const T* X, const T* W, std::size_t n, Places places, T* dots, int n_threads) {
    const std::size_t count = places.m * places.k;
    const auto row = [&](std::size_t p) { return W + static_cast<std::size_t>(places.rows[p]) * n; };
    const auto fill = [&](std::size_t p, std::size_t next) {
        const T* ahead = places.rows[next] < 0 ? row(p) : row(next);
        narrow(dot(X + p / places.k * n, row(p), n, ahead), dots + p);
    };
    if (count < READS * places.t) {
        in_shares(n_threads, count, [&](std::size_t begin, std::size_t end) {
            for (std::size_t p = begin; p < end; ++p)
                if (places.rows[p] < 0)
                    dots[p] = T{};
                else
                    fill(p, std::min(p + 1, end - 1));
        });
        return;
    }
    std::fill_n(dots, count, T{});
    const PlacesByRow by_row(places);
    in_shares(n_threads, by_row.order.size(), [&](std::size_t begin, std::size_t end) {
        for (std::size_t q = begin; q < end; ++q)
            fill(by_row.order[q], by_row.order[std::min(q + 1, end - 1)]);
    });
}

template <class T>
void gather_sum(const T* A, const T* V, std::size_t n, Places places, T* sums, int n_threads) {
    in_shares(n_threads, places.m, [&](std::size_t begin, std::size_t end) {
        Scratch<Real<T>> wide(std::is_same_v<T, Real<T>> ? 0 : n);
        for (std::size_t i = begin; i < end; ++i)
            fill_sum(sums + i * n, wide.data(), n, [&](RowSum<T>& sum) {
                for (std::size_t p = i * places.k; p < (i + 1) * places.k; ++p)
                    if (places.rows[p] >= 0) sum.add(A[p], V + static_cast<std::size_t>(places.rows[p]) * n);
            });
    });
}

template <class T>
void scatter_outer(const T* A, const T* X, std::size_t n, Places places, T* sums, int n_threads) {
    const PlacesByRow by_row(places);
    in_shares(n_threads, places.t, [&](std::size_t begin, std::size_t end) {
        Scratch<Real<T>> wide(std::is_same_v<T, Real<T>> ? 0 : n);
        for (std::size_t r = begin; r < end; ++r)
            if (by_row.starts[r] < by_row.starts[r + 1])
                fill_sum(sums + r * n, wide.data(), n, [&](RowSum<T>& sum) {
                    for (std::size_t q = by_row.starts[r]; q < by_row.starts[r + 1]; ++q)
                        sum.add(A[by_row.order[q]], X + by_row.order[q] / places.k * n);
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
