// The k largest values of each row, exactly; of equal values the first ones win.
//
// Which values they are depends on no instruction set and no number of threads; the sums of `top_k_dot`
// neither, for they are always taken in the same 64 parts.
#include <cstddef>
#include <cstdint>

#include "isa.hpp"

namespace sparsact {

template <class T>
struct Choice {
    const T* values;  // (m, t), without NaN
    std::size_t m, t;
    std::size_t k;  // 1 to t
    bool absolute;  // rank by absolute value
};

SPARSACT_DECLARE(
    // places (m, k), increasing; n_threads <= 0: as many as OpenMP would take.
    template <class T> void top_k(Choice<T> choice, std::int64_t* places, int n_threads);

    // dots (m, targets) of the chosen values and the rows of A (targets, t).
    template <class T>
    void top_k_dot(Choice<T> choice, const T* A, std::size_t targets, T* dots, int n_threads);

    // masked (m, t): the chosen values, 0 elsewhere.
    template <class T> void top_k_masked(Choice<T> choice, T* masked, int n_threads);)

}  // namespace sparsact

#ifdef SPARSACT_ISA

#include <algorithm>
#include <cmath>
#include <limits>

#include "scratch.hpp"
#include "threads.hpp"
#include "threshold.hpp"
#include "vector.hpp"

namespace sparsact::SPARSACT_ISA {

namespace {

constexpr std::size_t PARTS = 64;  // of every sum, whatever the width of a vector

// A row's values as they are ranked, and the least one chosen: the k largest are the values in `ranked` that
// are not below it.
template <class T>
class Chosen {
  public:
    explicit Chosen(std::size_t t)
        : ranked_count_(padded(t)), ranked_(padded(t)), between_(padded(t) + PADDED) {}

    void operator()(const Choice<T>& choice, std::size_t row) {
        const T* values = choice.values + row * choice.t;
        if (choice.absolute)
            for (std::size_t i = 0; i < choice.t; ++i) ranked_[i] = std::abs(values[i]);
        else
            std::copy_n(values, choice.t, ranked_.data());
        pad(ranked_.data(), choice.t);
        const Threshold<T> threshold = threshold_of(ranked_.data(), choice.t, choice.k, between_.data());
        least_ = threshold.value;
        strike_out(std::max(threshold.at_least, choice.k) - choice.k);
    }

    const T* ranked() const { return ranked_.data(); }
    T least() const { return least_; }

  private:
    // Of equal values the last lose: they become NaN, which no comparison chooses.
    void strike_out(std::size_t surplus) {
        for (std::size_t end = ranked_count_; surplus > 0 && end > 0; end -= PADDED) {
            T* block = ranked_.data() + end - PADDED;
            std::size_t equal = 0;
            for (std::size_t i = 0; i < PADDED; ++i) equal += block[i] == least_;
            if (equal <= surplus) {
                for (std::size_t i = 0; i < PADDED; ++i) block[i] = block[i] == least_ ? NOT : block[i];
                surplus -= equal;
            } else
                for (std::size_t i = PADDED; surplus > 0; --i)
                    if (block[i - 1] == least_) {
                        block[i - 1] = NOT;
                        --surplus;
                    }
        }
    }

    static constexpr T NOT = std::numeric_limits<T>::quiet_NaN();
    std::size_t ranked_count_;
    Scratch<T> ranked_, between_;
    T least_ = 0;
};

// Sum of the chosen values times a row of A: part p takes the places p, p + PARTS, ...; then neighbours pair
// up.
template <class T>
T dot(const Chosen<T>& chosen, const T* values, const T* a, std::size_t t) {
    using V = Vector<T>;
    constexpr std::size_t width = lanes<T>, vectors = PARTS / width;
    const T least = chosen.least(), *ranked = chosen.ranked();
    V sums[vectors] = {};
    std::size_t i = 0;
    for (; i + PARTS <= t; i += PARTS)
        for (std::size_t v = 0; v < vectors; ++v) {
            const std::size_t place = i + v * width;
            const V product = load<V>(values + place) * load<V>(a + place);
            sums[v] += load<V>(ranked + place) >= least ? product : V{};
        }
    alignas(64) T parts[PARTS];
    for (std::size_t v = 0; v < vectors; ++v) store(parts + v * width, sums[v]);
    for (std::size_t part = 0; i < t; ++i, ++part)
        if (ranked[i] >= least) parts[part] += values[i] * a[i];
    for (std::size_t half = PARTS / 2; half > 0; half /= 2)
        for (std::size_t part = 0; part < half; ++part) parts[part] += parts[part + half];
    return parts[0];
}

template <class T, class F>
void for_each_row(const Choice<T>& choice, int n_threads, const F& f) {
    const auto threads = static_cast<std::size_t>(available_threads(n_threads));
    const std::size_t tasks = std::max<std::size_t>(1, std::min(choice.m, threads));
    in_parallel(static_cast<int>(tasks), tasks, [&](std::size_t task) {
        Chosen<T> chosen(choice.t);
        for (std::size_t row = task * choice.m / tasks; row < (task + 1) * choice.m / tasks; ++row) {
            chosen(choice, row);
            f(chosen, row);
        }
    });
}

}  // namespace

template <class T>
void top_k(Choice<T> choice, std::int64_t* places, int n_threads) {
    for_each_row(choice, n_threads, [&](const Chosen<T>& chosen, std::size_t row) {
        places_at_least(chosen.ranked(), choice.t, chosen.least(), places + row * choice.k, choice.k);
    });
}

template <class T>
void top_k_dot(Choice<T> choice, const T* A, std::size_t targets, T* dots, int n_threads) {
    for_each_row(choice, n_threads, [&](const Chosen<T>& chosen, std::size_t row) {
        const T* values = choice.values + row * choice.t;
        for (std::size_t target = 0; target < targets; ++target)
            dots[row * targets + target] = dot(chosen, values, A + target * choice.t, choice.t);
    });
}

template <class T>
void top_k_masked(Choice<T> choice, T* masked, int n_threads) {
    for_each_row(choice, n_threads, [&](const Chosen<T>& chosen, std::size_t row) {
        using V = Vector<T>;
        constexpr std::size_t width = lanes<T>;
        const T *values = choice.values + row * choice.t, *ranked = chosen.ranked();
        T* out = masked + row * choice.t;
        std::size_t i = 0;
        for (; i + width <= choice.t; i += width)
            store(out + i, load<V>(ranked + i) >= chosen.least() ? load<V>(values + i) : V{});
        for (; i < choice.t; ++i) out[i] = ranked[i] >= chosen.least() ? values[i] : T(0);
    });
}

#define SPARSACT_INSTANTIATE(T)                                         \
    template void top_k(Choice<T>, std::int64_t*, int);                 \
    template void top_k_dot(Choice<T>, const T*, std::size_t, T*, int); \
    template void top_k_masked(Choice<T>, T*, int);
SPARSACT_INSTANTIATE(float)
SPARSACT_INSTANTIATE(double)

}  // namespace sparsact::SPARSACT_ISA

#else

#include "bind.hpp"

namespace sparsact {

namespace {

template <class T>
using Table = Array<T, 2>;

template <class T>
void bind_values_of(nb::module_& module) {
    module.def(
        "top_k",
        [](Table<const T> values, std::size_t k, bool absolute, Table<std::int64_t> places, int n_threads) {
            const Choice<T> choice{values.data(), values.shape(0), values.shape(1), k, absolute};
            std::int64_t* out = places.data();
            nb::gil_scoped_release unlocked;
            SPARSACT_DISPATCH(top_k, choice, out, n_threads);
        },
        nb::arg("values").noconvert(), nb::arg("k"), nb::arg("absolute"), nb::arg("places").noconvert(),
        nb::arg("n_threads"));
    module.def(
        "top_k_dot",
        [](Table<const T> values, Table<const T> A, std::size_t k, bool absolute, Table<T> dots,
           int n_threads) {
            const Choice<T> choice{values.data(), values.shape(0), values.shape(1), k, absolute};
            const T* rows = A.data();
            const std::size_t targets = A.shape(0);
            T* out = dots.data();
            nb::gil_scoped_release unlocked;
            SPARSACT_DISPATCH(top_k_dot, choice, rows, targets, out, n_threads);
        },
        nb::arg("values").noconvert(), nb::arg("A").noconvert(), nb::arg("k"), nb::arg("absolute"),
        nb::arg("dots").noconvert(), nb::arg("n_threads"));
    module.def(
        "top_k_masked",
        [](Table<const T> values, std::size_t k, bool absolute, Table<T> masked, int n_threads) {
            const Choice<T> choice{values.data(), values.shape(0), values.shape(1), k, absolute};
            T* out = masked.data();
            nb::gil_scoped_release unlocked;
            SPARSACT_DISPATCH(top_k_masked, choice, out, n_threads);
        },
        nb::arg("values").noconvert(), nb::arg("k"), nb::arg("absolute"), nb::arg("masked").noconvert(),
        nb::arg("n_threads"));
}

}  // namespace

SPARSACT_BINDINGS(module) {
    bind_values_of<float>(module);
    bind_values_of<double>(module);
}

}  // namespace sparsact

#endif
