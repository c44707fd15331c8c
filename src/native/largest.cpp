#include "largest.hpp"

#ifdef SPARSACT_ISA

#include <algorithm>
#include <functional>
#include <limits>

#include "packed_screen.hpp"
#include "rows.hpp"

namespace sparsact::SPARSACT_ISA {

namespace {

constexpr double NOTHING = -std::numeric_limits<double>::infinity();

// The units of one input, seen one after the other, that may be among its k largest.
class Race {
  public:
    explicit Race(std::size_t k) : k_(k) {}

    double floor() const { return floor_; }
    void add(std::size_t unit, double lower, double upper) {
        if (upper < floor_) return;
        units_.push_back({upper, static_cast<std::int64_t>(unit)});
        if (!(lower > floor_)) return;
        if (sure_.size() == k_) {
            std::pop_heap(sure_.begin(), sure_.end(), std::greater<>());
            sure_.pop_back();
        }
        sure_.push_back(lower);
        std::push_heap(sure_.begin(), sure_.end(), std::greater<>());
        if (sure_.size() == k_) floor_ = sure_.front();
    }

    // The units that are left of races over parts of them, which begin `apart` after each other.
    static std::vector<std::int64_t> left(const Race* races, std::size_t parts, std::size_t apart,
                                          std::size_t k) {
        std::vector<double> sure;
        for (std::size_t p = 0; p < parts; ++p)
            sure.insert(sure.end(), races[p * apart].sure_.begin(), races[p * apart].sure_.end());
        double floor = NOTHING;
        if (sure.size() >= k) {
            const auto last = sure.begin() + static_cast<std::ptrdiff_t>(k - 1);
            std::nth_element(sure.begin(), last, sure.end(), std::greater<>());
            floor = *last;
        }
        std::vector<std::int64_t> units;
        for (std::size_t p = 0; p < parts; ++p)
            for (const Entry& entry : races[p * apart].units_)
                if (!(entry.upper < floor)) units.push_back(entry.unit);
        return units;
    }

  private:
    struct Entry {
        double upper;
        std::int64_t unit;
    };
    std::size_t k_;
    double floor_ = NOTHING;    // the smallest of `sure_`, once they are k
    std::vector<double> sure_;  // a heap of the largest lower bounds
    std::vector<Entry> units_;
};

// Whether one of some numbers is not less than a floor, as NaN is not.
SPARSACT_INLINE bool any_not_less(Doubles numbers, double floor) {
#if defined(SPARSACT_ISA_avx512)
    return _mm512_cmp_pd_mask(numbers, _mm512_set1_pd(floor), _CMP_NLT_UQ) != 0;
#elif defined(SPARSACT_ISA_avx2)
    return _mm256_movemask_pd(_mm256_cmp_pd(numbers, _mm256_set1_pd(floor), _CMP_NLT_UQ)) != 0;
#else
    double some[WIDTH];
    store(some, numbers);
    return std::any_of(some, some + WIDTH, [&](double one) { return !(one < floor); });
#endif
}

// Units that are left of each input.
std::vector<std::vector<std::int64_t>> units_left(const Sketch& sketch, const Widening& widening,
                                                  const Inputs& inputs, std::size_t m, std::size_t k,
                                                  int threads) {
    const std::size_t tiles = tiles_of(sketch);
    const std::size_t parts = std::min(tiles, static_cast<std::size_t>(threads));
    std::vector<Race> races(parts * m, Race(k));
    in_parallel(static_cast<int>(parts), parts, [&](std::size_t part) {
        const std::size_t first = part * tiles / parts, last = (part + 1) * tiles / parts;
        Race* own = races.data() + part * m;
        const auto put = [&](std::size_t i, std::size_t j, const Parts& bound) {
            const Input& input = inputs.data()[i];
            const Doubles apart = slack(bound, input, widening.relative, widening.least);
            const Doubles highest = upper(bound, input, apart);
            if (!any_not_less(highest, own[i].floor())) return;
            double up[WIDTH], down[WIDTH];
            store(up, highest);
            store(down, lower(bound, input, apart));
            for (std::size_t l = 0; l < WIDTH && j + l < sketch.s; ++l) own[i].add(j + l, down[l], up[l]);
        };
        for_every_part(sketch, inputs, m, first, last, put);
    });
    std::vector<std::vector<std::int64_t>> units(m);
    for (std::size_t i = 0; i < m; ++i) units[i] = Race::left(races.data() + i, parts, m, k);
    return units;
}

// Outputs of the units of each input; the rows are read in order, each for all that need it.
template <class T>
void compute(Units<T, T> W, const T* X, std::vector<InDoubt<T>>& found, int threads) {
    struct Entry {
        std::size_t unit, input;
        T* to;
    };
    std::vector<Entry> entries;
    for (std::size_t i = 0; i < found.size(); ++i) {
        found[i].outputs.resize(found[i].units.size());
        for (std::size_t e = 0; e < found[i].units.size(); ++e)
            entries.push_back({static_cast<std::size_t>(found[i].units[e]), i, &found[i].outputs[e]});
    }
    if (found.size() > 1) {
        std::vector<std::size_t> starts(W.s + 1);
        for (const Entry& entry : entries) ++starts[entry.unit + 1];
        for (std::size_t j = 0; j < W.s; ++j) starts[j + 1] += starts[j];
        std::vector<Entry> sorted(entries.size());
        for (const Entry& entry : entries) sorted[starts[entry.unit]++] = entry;
        entries.swap(sorted);
    }
    const auto put = [&](std::size_t e, Real<T> value) {
        narrow(value + (W.bias ? widened(W.bias[entries[e].unit]) : Real<T>{}), entries[e].to);
    };
    in_shares(threads, entries.size(), [&](std::size_t begin, std::size_t end) {
        Dots<T, T, decltype(put)> waiting(W.n, put);
        for (std::size_t e = begin; e < end; ++e)
            waiting.add(X + entries[e].input * W.n, W.rows + entries[e].unit * W.n, e);
        waiting.finish();
    });
}

}  // namespace

template <class T>
std::vector<InDoubt<T>> in_doubt(const Sketch& sketch, const Widening& widening, Units<T, T> W, const T* X,
                                 std::size_t m, std::size_t k, int n_threads) {
    std::vector<InDoubt<T>> found(m);
    const int threads = available_threads(n_threads);
    const Inputs inputs(sketch, X, m, widening.rounding, threads);
    auto units = units_left(sketch, widening, inputs, m, k, threads);
    for (std::size_t i = 0; i < m; ++i) {
        const Input& input = inputs.data()[i];
        found[i].known = input.b * input.size <= widening.limit;
        if (found[i].known) found[i].units = std::move(units[i]);
    }
    compute(W, X, found, threads);
    return found;
}

template <class T>
std::size_t largest_top_k(const Sketch& sketch, const Widening& widening, Units<T, T> W, const T* X,
                          std::size_t m, std::size_t k, T* values, std::int64_t* indices, int n_threads) {
    const auto found = in_doubt(sketch, widening, W, X, m, k, n_threads);
    std::size_t unknown = 0;
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < m; ++i) {
        if (!found[i].known) {
            indices[i * k] = -1;
            ++unknown;
            continue;
        }
        const std::vector<T>& outputs = found[i].outputs;
        order.resize(outputs.size());
        for (std::size_t e = 0; e < order.size(); ++e) order[e] = e;
        std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(k), order.end(),
                          [&](std::size_t one, std::size_t other) {
                              const Real<T> a = widened(outputs[one]), b = widened(outputs[other]);
                              if (a != a || b != b) return a != a && (b == b || one < other);  // NaN first
                              return a > b || (a == b && one < other);
                          });
        for (std::size_t p = 0; p < k; ++p) {
            values[i * k + p] = outputs[order[p]];
            indices[i * k + p] = found[i].units[order[p]];
        }
    }
    return unknown;
}

template <class T>
std::size_t largest_fill(const Sketch& sketch, const Widening& widening, Units<T, T> W, const T* X,
                         std::size_t m, std::size_t k, T* out, int n_threads) {
    const auto found = in_doubt(sketch, widening, W, X, m, k, n_threads);
    T least;
    narrow(-std::numeric_limits<Real<T>>::infinity(), &least);
    std::fill_n(out, m * W.s, least);
    std::size_t unknown = 0;
    for (std::size_t i = 0; i < m; ++i) {
        unknown += !found[i].known;
        for (std::size_t e = 0; e < found[i].units.size(); ++e)
            out[i * W.s + static_cast<std::size_t>(found[i].units[e])] = found[i].outputs[e];
    }
    return unknown;
}

#define SPARSACT_INSTANTIATE(T)                                                                            \
    template std::size_t largest_top_k(const Sketch&, const Widening&, Units<T, T>, const T*, std::size_t, \
                                       std::size_t, T*, std::int64_t*, int);                               \
    template std::size_t largest_fill(const Sketch&, const Widening&, Units<T, T>, const T*, std::size_t,  \
                                      std::size_t, T*, int);
SPARSACT_INSTANTIATE(float)
SPARSACT_INSTANTIATE(Bfloat16)
SPARSACT_INSTANTIATE(Float16)

}  // namespace sparsact::SPARSACT_ISA

#else

#include <type_traits>

#include "bind_neurons.hpp"

namespace sparsact {

namespace {

// Weights and their screen, both held. Arrays come as addresses.
class LargestOutputs : public Neurons {
  public:
    LargestOutputs(nb::object screen, Weights W, Bias bias, double rounding, double relative, double least,
                   double limit)
        : Neurons(W, bias, false),
          held_(screen),
          sketch_(nb::cast<const Screen&>(screen).sketch()),
          widening_{rounding, relative, least, limit} {}

    std::size_t top_k(Address x, std::size_t m, std::size_t k, Address values, Address indices,
                      int n_threads) const {
        return with_narrow([&](auto W, auto number) {
            using T = decltype(number);
            return SPARSACT_DISPATCH(largest_top_k, sketch_, widening_, W, at<const T>(x), m, k,
                                     at<T>(values), at<std::int64_t>(indices), n_threads);
        });
    }
    std::size_t fill(Address x, std::size_t m, std::size_t k, Address out, int n_threads) const {
        return with_narrow([&](auto W, auto number) {
            using T = decltype(number);
            return SPARSACT_DISPATCH(largest_fill, sketch_, widening_, W, at<const T>(x), m, k, at<T>(out),
                                     n_threads);
        });
    }

  private:
    // Calls f with the units and a number of their type; screens exist for float32 and narrower types only.
    template <class F>
    std::size_t with_narrow(F f) const {
        nb::gil_scoped_release unlocked;
        return with_units([&](auto W) {
            using T = std::remove_cv_t<std::remove_pointer_t<decltype(W.rows)>>;
            if constexpr (std::is_same_v<T, double> || !std::is_same_v<decltype(W), Units<T, T>>)
                return std::size_t{0};
            else
                return f(W, T{});
        });
    }

    nb::object held_;
    Sketch sketch_;
    Widening widening_;
};

}  // namespace

SPARSACT_BINDINGS(module) {
    nb::class_<LargestOutputs>(module, "LargestOutputs")
        .def(nb::init<nb::object, Weights, Bias, double, double, double, double>(), nb::arg("screen"),
             nb::arg("W"), nb::arg("bias").none(), nb::arg("rounding"), nb::arg("relative"), nb::arg("least"),
             nb::arg("limit"))
        .def("top_k", &LargestOutputs::top_k)
        .def("fill", &LargestOutputs::fill);
}

}  // namespace sparsact

#endif
