#include "neurons.hpp"

#ifdef SPARSACT_ISA

#include <algorithm>
#include <vector>

#include "nonzero.hpp"
#include "rows.hpp"
#include "scratch.hpp"
#include "threads.hpp"

namespace sparsact::SPARSACT_ISA {

template <class T>
ActiveCounts active_counts(const T* H, std::size_t m, std::size_t s) {
    ActiveCounts counts{0, 0};
    std::vector<std::uint8_t> some(s);
    for (std::size_t i = 0; i < m; ++i) {
        std::uint32_t entries = 0;
        for (std::size_t j = 0; j < s; ++j) {
            const bool on = nonzero(H + i * s + j);
            some[j] |= on;
            entries += on;
        }
        counts.entries += entries;
    }
    for (const std::uint8_t on : some) counts.units += on;
    return counts;
}

namespace {

constexpr std::size_t TILE_BYTES = 24 << 10;  // of sums that stay in the first cache
constexpr std::size_t AHEAD_BYTES = 4 << 10;  // of rows that are asked for before they are read
constexpr std::size_t INPUTS = 64;            // whose sums, or numbers, stay in a cache together

// Units that some input has active, in order, and which inputs those are.
class ActiveUnits {
  public:
    template <class M>
    ActiveUnits(const M* on, std::size_t m, std::size_t s) : places_(s + 8), units_(places_.data()) {
        if (m == 1)
            count_ = nonzero_places(on, s, units_);
        else
            by_unit(on, m, s);
    }

    std::size_t count() const { return count_; }
    std::size_t entries() const { return inputs_.empty() ? count_ : inputs_.size(); }
    std::size_t unit(std::size_t u) const { return static_cast<std::size_t>(units_[u]); }

    // Calls f(input) for each input that has the u-th of the units active.
    template <class F>
    SPARSACT_INLINE void for_inputs(std::size_t u, F f) const {
        if (inputs_.empty()) return f(std::size_t{0});
        const std::size_t j = unit(u);
        for (std::size_t e = starts_[j]; e < starts_[j + 1]; ++e) f(std::size_t{inputs_[e]});
    }

  private:
    template <class M>
    void by_unit(const M* on, std::size_t m, std::size_t s) {
        starts_.resize(s + 2);
        for (std::size_t i = 0; i < m; ++i)
            for (std::size_t j = 0; j < s; ++j) starts_[j + 2] += nonzero(on + i * s + j);
        for (std::size_t j = 0; j < s; ++j) {
            units_[count_] = static_cast<std::int64_t>(j);
            count_ += starts_[j + 2] > 0;
            starts_[j + 2] += starts_[j + 1];
        }
        inputs_.resize(starts_[s + 1]);
        Scratch<std::int64_t> places(s + 8);
        for (std::size_t i = 0; i < m;
             ++i) {  // moves starts_[j + 1] from where unit j begins to where it ends
            const std::size_t found = nonzero_places(on + i * s, s, places.data());
            for (std::size_t e = 0; e < found; ++e)
                inputs_[starts_[static_cast<std::size_t>(places[e]) + 1]++] = static_cast<std::uint32_t>(i);
        }
    }

    Scratch<std::int64_t> places_;
    std::int64_t* units_;
    std::size_t count_ = 0;
    std::vector<std::size_t> starts_;    // (s + 2,), of inputs_; with one input both are empty
    std::vector<std::uint32_t> inputs_;  // of each unit in turn
};

// Sums (m, width) of the rows of active units from column `first`: the rows of one input, several at a time.
template <class T, class S>
void add_for_one(const T* H, const ActiveUnits& active, const S* rows, std::size_t n, std::size_t width,
                 Real<S>* sums) {
    RowSum<S> sum(sums, width);
    for (std::size_t u = 0; u < active.count(); ++u)
        sum.add(widened(H[active.unit(u)]), rows + active.unit(u) * n);
    sum.finish();
}

// The same for several inputs: each row once, for all that have it.
template <class T, class S>
void add_for_all(const T* H, std::size_t s, const ActiveUnits& active, const S* rows, std::size_t n,
                 std::size_t width, Real<S>* sums) {
    const std::size_t ahead = 1 + AHEAD_BYTES / (width * sizeof(S));
    for (std::size_t u = 0; u < active.count(); ++u) {
        const S* row = rows + active.unit(u) * n;
        const S* next = rows + active.unit(std::min(u + ahead, active.count() - 1)) * n;
        active.for_inputs(u, [&](std::size_t i) {
            const Real<S> a = widened(H[i * s + active.unit(u)]);
            add_rows<1>(sums + i * width, width, &a, &row, &next);
        });
    }
}

// Calls f(active units, first input, inputs) for parts of the m inputs, and returns how many numbers are not
// zero; if they are more than `most`, it calls nothing.
template <class M, class F>
std::size_t in_parts(const M* on, std::size_t m, std::size_t s, std::size_t most, F f) {
    if (m <= INPUTS) {
        const ActiveUnits active(on, m, s);
        if (active.entries() <= most && m > 0) f(active, std::size_t{0}, m);
        return active.entries();
    }
    const std::size_t entries = active_counts(on, m, s).entries;
    for (std::size_t from = 0; from < m && entries <= most; from += INPUTS) {
        const std::size_t rows = std::min(INPUTS, m - from);
        f(ActiveUnits(on + from * s, rows, s), from, rows);
    }
    return entries;
}

// Columns [first, first + width) of the product.
template <class T, class S>
void fill_columns(const T* H, std::size_t m, const ActiveUnits& active, const Units<T, S>& V,
                  std::size_t first, std::size_t width, Real<S>* sums, T* out) {
    for (std::size_t i = 0; i < m; ++i)
        for (std::size_t c = 0; c < width; ++c)
            sums[i * width + c] = V.bias ? widened(V.bias[first + c]) : Real<S>{};
    if (m == 1)
        add_for_one(H, active, V.rows + first, V.n, width, sums);
    else
        add_for_all(H, V.s, active, V.rows + first, V.n, width, sums);
    for (std::size_t i = 0; i < m; ++i)
        for (std::size_t c = 0; c < width; ++c) narrow(sums[i * width + c], out + i * V.n + first + c);
}

}  // namespace

template <class T, class S>
std::size_t sparse_product(const T* H, std::size_t m, Units<T, S> V, T* out, std::size_t most,
                           int n_threads) {
    return in_parts(H, m, V.s, most, [&](const ActiveUnits& active, std::size_t from, std::size_t rows) {
        constexpr std::size_t line = LINE / sizeof(S);  // columns: no two threads write to the same line
        const std::size_t lines = (V.n + line - 1) / line,
                          tile = std::max<std::size_t>(1, TILE_BYTES / (rows * line * sizeof(Real<S>)));
        in_shares(n_threads, lines, [&](std::size_t begin, std::size_t end) {
            Scratch<Real<S>> sums(rows * line * std::min(tile, end - begin));
            for (std::size_t at = begin; at < end; at += tile) {
                const std::size_t first = at * line, last = std::min(V.n, std::min(end, at + tile) * line);
                fill_columns(H + from * V.s, rows, active, V, first, last - first, sums.data(),
                             out + from * V.n);
            }
        });
    });
}

template <class T, class S, class M>
std::size_t active_dot(const T* X, const M* on, std::size_t m, Units<T, S> W, T* out, std::size_t most,
                       int n_threads) {
    return in_parts(on, m, W.s, most, [&](const ActiveUnits& active, std::size_t from, std::size_t rows) {
        const T* inputs = X + from * W.n;
        T* dots = out + from * W.s;
        std::fill_n(dots, rows * W.s, T{});
        const auto put = [&](std::size_t place, Real<S> value) {
            narrow(value + (W.bias ? widened(W.bias[place % W.s]) : Real<S>{}), dots + place);
        };
        in_shares(n_threads, active.count(), [&](std::size_t begin, std::size_t end) {
            Dots<T, S, decltype(put)> waiting(W.n, put);
            for (std::size_t u = begin; u < end; ++u) {
                const std::size_t j = active.unit(u);
                active.for_inputs(
                    u, [&](std::size_t i) { waiting.add(inputs + i * W.n, W.rows + j * W.n, i * W.s + j); });
            }
            waiting.finish();
        });
    });
}

#define SPARSACT_INSTANTIATE(T, S)                                                                       \
    template std::size_t sparse_product(const T*, std::size_t, Units<T, S>, T*, std::size_t, int);       \
    template std::size_t active_dot(const T*, const T*, std::size_t, Units<T, S>, T*, std::size_t, int); \
    template std::size_t active_dot(const T*, const std::uint8_t*, std::size_t, Units<T, S>, T*,         \
                                    std::size_t, int);
SPARSACT_INSTANTIATE(double, double)
SPARSACT_INSTANTIATE(float, float)
SPARSACT_INSTANTIATE(Bfloat16, Bfloat16)
SPARSACT_INSTANTIATE(float, Bfloat16)
SPARSACT_INSTANTIATE(Float16, Float16)
template ActiveCounts active_counts(const double*, std::size_t, std::size_t);
template ActiveCounts active_counts(const float*, std::size_t, std::size_t);
template ActiveCounts active_counts(const Bfloat16*, std::size_t, std::size_t);
template ActiveCounts active_counts(const std::uint8_t*, std::size_t, std::size_t);

}  // namespace sparsact::SPARSACT_ISA

#else

#include "bind_neurons.hpp"

namespace sparsact {

SPARSACT_BINDINGS(module) {
    nb::class_<SparseProduct>(module, "SparseProduct")
        .def(nb::init<Weights, Bias, bool>(), nb::arg("V"), nb::arg("bias").none(), nb::arg("wide"))
        .def("at", &SparseProduct::operator());
    nb::class_<ActiveDot>(module, "ActiveDot")
        .def(nb::init<Weights, Bias, bool>(), nb::arg("W"), nb::arg("bias").none(), nb::arg("wide"))
        .def("at", &ActiveDot::where_nonzero)
        .def("at_mask", &ActiveDot::where_masked)
        .def("at_screen", &ActiveDot::where_unproved);
}

}  // namespace sparsact

#endif
