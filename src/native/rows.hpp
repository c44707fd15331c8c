// Products with rows of a matrix that stand anywhere in it: while one is read the next is asked for, since no
// processor can guess which it will be. Internal linkage: each instruction set keeps its own copy.
#pragma once

#include <algorithm>

#include "halves.hpp"

namespace sparsact::SPARSACT_ISA {
namespace {

constexpr std::size_t LINE = 64;    // bytes of the cache
constexpr std::size_t PAGE = 4096;  // bytes whose address is looked up at once
constexpr std::size_t PARTIAL_BYTES = 128;
constexpr int ROWS_AT_ONCE = 4;  // whose sum is loaded and stored once
constexpr int DOTS_AT_ONCE = 2;  // whose partial sums stay in registers

// Asks for the line of row[ahead], for the second cache: rows of a power of two bytes share the same few
// places of the first, and would drive each other out of it.
template <class T>
SPARSACT_INLINE void prefetch_row([[maybe_unused]] const T* row, [[maybe_unused]] std::size_t ahead) {
#ifdef SPARSACT_VECTORS
    __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<std::size_t>(row) + ahead * sizeof(T)),
                       0, 2);
#endif
}

// Asks for a line of each page, so that addresses are looked up before the rest is asked for.
template <class T>
SPARSACT_INLINE void prefetch_pages(const T* row, std::size_t n) {
    for (std::size_t page = 0; page < n; page += PAGE / sizeof(T)) prefetch_row(row, page);
}

// Some <x, row>, each by PARTIAL_BYTES of partial sums; `next` are the rows that will follow.
template <int count, class T, class S>
SPARSACT_INLINE void fill_dots(const T* const* x, const S* const* rows, std::size_t n, const S* const* next,
                               Real<S>* dots) {
    constexpr std::size_t partials = PARTIAL_BYTES / sizeof(Real<S>), width = lanes<Real<S>>,
                          vectors = partials / width;
    Vector<Real<S>> sums[count][vectors] = {};
    std::size_t i = 0;
    for (; i + partials <= n; i += partials)
        for (int r = 0; r < count; ++r) {
            for (std::size_t ahead = 0; ahead < partials * sizeof(S); ahead += LINE)
                prefetch_row(next[r], i + ahead / sizeof(S));
            for (std::size_t v = 0; v < vectors; ++v)
                sums[r][v] += load_reals(x[r] + i + v * width) * load_reals(rows[r] + i + v * width);
        }
    for (int r = 0; r < count; ++r) {
        Real<S> partial[partials];
        for (std::size_t v = 0; v < vectors; ++v) store(partial + v * width, sums[r][v]);
        for (std::size_t p = 0; i + p < n; ++p) partial[p] += widened(x[r][i + p]) * widened(rows[r][i + p]);
        for (std::size_t half = partials / 2; half; half /= 2)
            for (std::size_t p = 0; p < half; ++p) partial[p] += partial[p + half];
        dots[r] = partial[0];
    }
}

// Calls put(place, <x, row>) for every product that is added; they wait as the rows of a RowSum do.
template <class T, class S, class F>
class Dots {
  public:
    Dots(std::size_t n, F put) : n_(n), put_(put) {}

    SPARSACT_INLINE void add(const T* x, const S* row, std::size_t place) {
        x_[waiting_] = x;
        rows_[waiting_] = row;
        places_[waiting_] = place;
        prefetch_pages(row, n_);
        if (++waiting_ < 3 * DOTS_AT_ONCE) return;
        fill<DOTS_AT_ONCE>(0, rows_ + DOTS_AT_ONCE);
        std::copy_n(x_ + DOTS_AT_ONCE, 2 * DOTS_AT_ONCE, x_);
        std::copy_n(rows_ + DOTS_AT_ONCE, 2 * DOTS_AT_ONCE, rows_);
        std::copy_n(places_ + DOTS_AT_ONCE, 2 * DOTS_AT_ONCE, places_);
        waiting_ = 2 * DOTS_AT_ONCE;
    }

    void finish() {
        for (int r = 0; r < waiting_; ++r) fill<1>(r, rows_ + std::min(r + 1, waiting_ - 1));
        waiting_ = 0;
    }

  private:
    template <int count>
    SPARSACT_INLINE void fill(int first, const S* const* next) {
        Real<S> dots[count];
        fill_dots<count>(x_ + first, rows_ + first, n_, next, dots);
        for (int r = 0; r < count; ++r) put_(places_[first + r], dots[r]);
    }

    std::size_t n_;
    F put_;
    const T* x_[3 * DOTS_AT_ONCE];
    const S* rows_[3 * DOTS_AT_ONCE];
    std::size_t places_[3 * DOTS_AT_ONCE];
    int waiting_ = 0;
};

// Adds `count` rows, each times a number, to sums (n,), in order; `next` are the rows that will follow.
template <int count, class S>
SPARSACT_INLINE void add_rows(Real<S>* sums, std::size_t n, const Real<S>* a, const S* const* rows,
                              const S* const* next) {
    constexpr std::size_t width = lanes<Real<S>>, line = LINE / sizeof(S);
    static_assert(line % width == 0);
    std::size_t i = 0;
    for (; i + line <= n; i += line) {
        for (int r = 0; r < count; ++r) prefetch_row(next[r], i);
        for (std::size_t v = i; v < i + line; v += width) {
            auto sum = load<Vector<Real<S>>>(sums + v);
            for (int r = 0; r < count; ++r) sum += a[r] * load_reals(rows[r] + v);
            store(sums + v, sum);
        }
    }
    for (; i < n; ++i)
        for (int r = 0; r < count; ++r) sums[i] += a[r] * widened(rows[r][i]);
}

// Adds rows, each times a number, to sums (n,). Of the rows that wait the first are added at once, while the
// next as many are asked for, and of those after them the pages.
template <class S>
class RowSum {
  public:
    RowSum(Real<S>* sums, std::size_t n) : sums_(sums), n_(n) {}

    SPARSACT_INLINE void add(Real<S> a, const S* row) {
        a_[waiting_] = a;
        rows_[waiting_] = row;
        prefetch_pages(row, n_);
        if (++waiting_ < 3 * ROWS_AT_ONCE) return;
        add_rows<ROWS_AT_ONCE>(sums_, n_, a_, rows_, rows_ + ROWS_AT_ONCE);
        std::copy_n(a_ + ROWS_AT_ONCE, 2 * ROWS_AT_ONCE, a_);
        std::copy_n(rows_ + ROWS_AT_ONCE, 2 * ROWS_AT_ONCE, rows_);
        waiting_ = 2 * ROWS_AT_ONCE;
    }

    void finish() {
        for (int r = 0; r < waiting_; ++r)
            add_rows<1>(sums_, n_, a_ + r, rows_ + r, rows_ + std::min(r + 1, waiting_ - 1));
        waiting_ = 0;
    }

  private:
    Real<S>* sums_;
    std::size_t n_;
    const S* rows_[3 * ROWS_AT_ONCE];
    Real<S> a_[3 * ROWS_AT_ONCE];
    int waiting_ = 0;
};

}  // namespace
}  // namespace sparsact::SPARSACT_ISA
