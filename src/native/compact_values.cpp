// Values at rows of tables whose buckets stand in the order of their keys: float32 or float64 coefficients,
// added up in float64. The same bits on every instruction set and number of threads.
#include <memory>

#include "combine.hpp"
#include "hashing.hpp"
#include "sorted_keys.hpp"

namespace sparsact {

// The polynomials of n buckets; one of weight 0 is empty.
template <class Coefficient, class Weight>
struct CompactBuckets {
    SortedKeys keys;
    const Coefficient* coefficients;  // (n, D, targets)
    const Weight* weights;            // (n,)
    std::size_t n, D, targets;
    int degree;
    Combine combine;

    const Coefficient* polynomial(std::size_t number) const { return coefficients + number * D * targets; }
    double weight(std::size_t number) const { return static_cast<double>(weights[number]); }
};

using Doubles = CompactBuckets<double, double>;
using Floats = CompactBuckets<float, float>;
using CountedFloats = CompactBuckets<float, std::uint16_t>;

SPARSACT_DECLARE(
    // values (m, targets) of X (m, d): the average by weight over tables, their sum, or the first that is not
    // empty; total (m,), the weight behind each. n_threads <= 0: as many as OpenMP would take.
    void compact_values(const double* X, std::size_t m, const Hashes& hashes, const Doubles& buckets,
                        double* values, double* total, int n_threads);
    void compact_values(const double* X, std::size_t m, const Hashes& hashes, const Floats& buckets,
                        double* values, double* total, int n_threads);
    void compact_values(const double* X, std::size_t m, const Hashes& hashes, const CountedFloats& buckets,
                        double* values, double* total, int n_threads);

    // The same for a single row and one target. What it is made from stays where it is.
    std::unique_ptr<RowTable> compact_row_table(const Hashes& hashes, const Doubles& buckets);
    std::unique_ptr<RowTable> compact_row_table(const Hashes& hashes, const Floats& buckets);
    std::unique_ptr<RowTable> compact_row_table(const Hashes& hashes, const CountedFloats& buckets);)

}  // namespace sparsact

#ifdef SPARSACT_ISA

#include <algorithm>
#include <type_traits>

#include "hashed_rows.hpp"
#include "monomials.hpp"
#include "polynomials.hpp"
#include "single_row.hpp"
#include "threads.hpp"

namespace sparsact::SPARSACT_ISA {

namespace {

constexpr std::size_t TABLES = 8;  // looked up together for a block of rows: memory answers meanwhile

constexpr std::size_t MOST_LINES = 8;  // of coefficients, asked for ahead

template <class Buckets>
SPARSACT_INLINE void prefetch_polynomial(const Buckets& buckets, std::size_t number) {
    constexpr std::size_t A_LINE = 64 / sizeof(*buckets.coefficients);
    prefetch(buckets.weights, number);
    const auto *own = buckets.polynomial(number), *last = own + buckets.D * buckets.targets - 1;
    for (const auto *at = own, *stop = std::min(last, own + MOST_LINES * A_LINE); at < stop; at += A_LINE)
        prefetch(at, 0);
    prefetch(last, 0);
}

template <class Buckets>
class CompactValues {
    using Coefficient = std::remove_cv_t<std::remove_pointer_t<decltype(Buckets::coefficients)>>;

  public:
    CompactValues(const Hashes& hashes, const Buckets& buckets)
        : hashes_(hashes),
          buckets_(buckets),
          search_(buckets.keys),
          rows_(hashes),
          features_(hashes.grid ? std::min(TABLES, hashes.tables) * hashes.p * BLOCK : 0),
          value_(buckets.targets),
          zeros_(buckets.D),
          sums_(hashes.p, buckets.degree, buckets.combine == Combine::first) {
        std::fill_n(zeros_.data(), buckets.D, Coefficient{});
    }

    void fill(const double* X, std::size_t rows, double* values, double* total) {
        const std::size_t targets = buckets_.targets;
        rows_.read(X, rows);
        std::fill_n(values, rows * targets, 0.0);
        std::fill_n(total, rows, 0.0);
        sums_.clear();
        for (std::size_t first = 0; first < hashes_.tables; first += TABLES) {
            const std::size_t tables = std::min(TABLES, hashes_.tables - first);
            look_up(first, tables, rows);
            for (std::size_t t = 0; t < tables; ++t) add(t, rows, values, total);
        }
        for (std::size_t r = 0; targets == 1 && r < rows; ++r) {
            values[r] = sums_.value(r);
            total[r] = sums_.total(r);
        }
        if (buckets_.combine != Combine::average) return;
        for (std::size_t r = 0; r < rows; ++r)
            for (std::size_t k = 0; k < targets; ++k)
                values[r * targets + k] /= total[r] > 0.0 ? total[r] : 1.0;
    }

  private:
    double* features(std::size_t t) { return features_.data() + t * hashes_.p * BLOCK; }

    // Numbers of buckets take the place of keys.
    void look_up(std::size_t first, std::size_t tables, std::size_t rows) {
        for (std::size_t t = 0; t < tables; ++t) {
            rows_.hash(first + t, keys_ + t * BLOCK, hashes_.grid ? features(t) : nullptr);
            for (std::size_t r = 0; r < rows; ++r) search_.prefetch_home(keys_[t * BLOCK + r]);
        }
        for (std::size_t t = 0; t < tables; ++t) {
            for (std::size_t r = 0; r < rows; ++r) {
                const std::uint64_t number = search_.number(keys_[t * BLOCK + r]);
                keys_[t * BLOCK + r] = number;
                if (number < buckets_.n) prefetch_polynomial(buckets_, number);
            }
            std::fill(keys_ + t * BLOCK + rows, keys_ + (t + 1) * BLOCK, NOWHERE);
        }
    }

    void add(std::size_t t, std::size_t rows, double* values, double* total) {
        const double* v = hashes_.grid ? features(t) : rows_.Z();
        const bool first = buckets_.combine == Combine::first;
        if (buckets_.targets == 1) {
            const std::uint64_t* numbers = keys_ + t * BLOCK;
            sums_.add(
                rows, v,
                [&](std::size_t r) {
                    return numbers[r] < buckets_.n ? buckets_.polynomial(numbers[r]) : zeros_.data();
                },
                [&](std::size_t r) { return numbers[r] < buckets_.n ? buckets_.weight(numbers[r]) : 0.0; });
            return;
        }
        for (std::size_t r = 0; r < rows; ++r) {
            const std::uint64_t number = keys_[t * BLOCK + r];
            if (number >= buckets_.n || (first && total[r] > 0.0)) continue;
            const double weight = static_cast<double>(buckets_.weights[number]);
            if (!(weight > 0.0)) continue;
            total[r] += weight;
            add_bucket(number, first ? 1.0 : weight, v + r, values + r * buckets_.targets);
        }
    }

    // Of several targets.
    SPARSACT_INLINE void add_bucket(std::size_t number, double weight, const double* v, double* values) {
        const std::size_t targets = buckets_.targets;
        const auto* own = buckets_.coefficients + number * buckets_.D * targets;
        const auto coordinate = [&](std::size_t j) { return v[j * BLOCK]; };
        std::fill_n(value_.data(), targets, 0.0);
        for_each_monomial<double>(hashes_.p, buckets_.degree, coordinate, [&](std::size_t a, double phi) {
            for (std::size_t k = 0; k < targets; ++k)
                value_[k] += phi * static_cast<double>(own[a * targets + k]);
        });
        for (std::size_t k = 0; k < targets; ++k) values[k] += weight * value_[k];
    }

    const Hashes hashes_;
    const Buckets buckets_;
    const SortedSearch search_;
    HashedRows rows_;
    Scratch<double> features_, value_;
    Scratch<Coefficient> zeros_;
    BlockSums sums_;
    alignas(64) std::uint64_t keys_[TABLES * BLOCK];
};

template <class Buckets>
void fill_values(const double* X, std::size_t m, const Hashes& hashes, const Buckets& buckets, double* values,
                 double* total, int n_threads) {
    const std::size_t blocks = (m + BLOCK - 1) / BLOCK;
    const auto threads = static_cast<std::size_t>(available_threads(n_threads));
    const std::size_t tasks = std::min(blocks, threads);
    in_parallel(static_cast<int>(threads), tasks, [&](std::size_t task) {
        CompactValues<Buckets> compact(hashes, buckets);
        for (std::size_t block = task * blocks / tasks; block < (task + 1) * blocks / tasks; ++block) {
            const std::size_t first = block * BLOCK;
            compact.fill(X + first * hashes.d, std::min(BLOCK, m - first), values + first * buckets.targets,
                         total + first);
        }
    });
}

template <class Buckets>
class CompactRowTable : public RowTable {
  public:
    CompactRowTable(const Hashes& hashes, const Buckets& buckets)
        : hashes_(hashes), buckets_(buckets), search_(buckets.keys) {}

    void hash(const double* x, RowSpace& row) const override { SingleRow::put(row, hashes_, x, search_); }

    void look_up(RowSpace& row) const override {
        SingleRow::in(row).look_up(search_, [&](std::uint64_t number) {
            if (number < buckets_.n) prefetch_polynomial(buckets_, number);
        });
    }

    double value(RowSpace& space, double& behind) const override {
        SingleRow& row = SingleRow::in(space);
        const double value = row.value(buckets_, buckets_.combine, behind);
        row.~SingleRow();
        return value;
    }

    std::size_t columns() const override { return hashes_.d; }

  private:
    const Hashes hashes_;
    const Buckets buckets_;
    const SortedSearch search_;
};

}  // namespace

std::unique_ptr<RowTable> compact_row_table(const Hashes& hashes, const Doubles& buckets) {
    return std::make_unique<CompactRowTable<Doubles>>(hashes, buckets);
}

std::unique_ptr<RowTable> compact_row_table(const Hashes& hashes, const Floats& buckets) {
    return std::make_unique<CompactRowTable<Floats>>(hashes, buckets);
}

std::unique_ptr<RowTable> compact_row_table(const Hashes& hashes, const CountedFloats& buckets) {
    return std::make_unique<CompactRowTable<CountedFloats>>(hashes, buckets);
}

void compact_values(const double* X, std::size_t m, const Hashes& hashes, const Doubles& buckets,
                    double* values, double* total, int n_threads) {
    fill_values(X, m, hashes, buckets, values, total, n_threads);
}

void compact_values(const double* X, std::size_t m, const Hashes& hashes, const Floats& buckets,
                    double* values, double* total, int n_threads) {
    fill_values(X, m, hashes, buckets, values, total, n_threads);
}

void compact_values(const double* X, std::size_t m, const Hashes& hashes, const CountedFloats& buckets,
                    double* values, double* total, int n_threads) {
    fill_values(X, m, hashes, buckets, values, total, n_threads);
}

}  // namespace sparsact::SPARSACT_ISA

#else

#include "bind.hpp"
#include "bind_buckets.hpp"

namespace sparsact {

namespace {

using Words = Array<const std::uint32_t, 1>;

// All that compact_values takes but the rows; it holds the arrays.
template <class Coefficient, class Weight>
class CompactPredictor {
  public:
    CompactPredictor(Numbers centre, Matrix local, Matrix directions, Numbers offsets, Keys seeds, bool grid,
                     bool signs, Words starts, Words tags, int degree,
                     Array<const Coefficient, 3> coefficients, Array<const Weight, 1> weights,
                     const std::string& combine)
        : hashes_(hashes_of(centre, local, directions, offsets, seeds, grid, signs)),
          buckets_{{starts.data(), tags.data(), starts.shape(0) - 1, tags.shape(0)},
                   coefficients.data(),
                   weights.data(),
                   weights.shape(0),
                   coefficients.shape(1),
                   coefficients.shape(2),
                   degree,
                   combine_of(combine)},
          numbers_{centre, offsets},
          matrices_{local, directions},
          seeds_(seeds),
          words_{starts, tags},
          coefficients_(coefficients),
          weights_(weights),
          row_table_(SPARSACT_DISPATCH(compact_row_table, hashes_, buckets_)) {}

    void operator()(Matrix X, Array<double, 2> values, Array<double, 1> total, int n_threads) const {
        const double* rows = X.data();
        const std::size_t m = X.shape(0);
        double *out = values.data(), *behind = total.data();
        nb::gil_scoped_release unlocked;
        SPARSACT_DISPATCH(compact_values, rows, m, hashes_, buckets_, out, behind, n_threads);
    }

    const RowTable* row_table() const { return row_table_.get(); }

  private:
    Hashes hashes_;
    CompactBuckets<Coefficient, Weight> buckets_;
    // They keep the memory alive.
    Numbers numbers_[2];
    Matrix matrices_[2];
    Keys seeds_;
    Words words_[2];
    Array<const Coefficient, 3> coefficients_;
    Array<const Weight, 1> weights_;
    std::unique_ptr<RowTable> row_table_;
};

// nanobind picks one by the types of coefficients and weights.
template <class Coefficient, class Weight>
void bind_predictor(nb::module_& module, const char* name) {
    using Predictor = CompactPredictor<Coefficient, Weight>;
    nb::class_<Predictor>(module, name)
        .def("__call__", &Predictor::operator(), nb::arg("X").noconvert(), nb::arg("values").noconvert(),
             nb::arg("total").noconvert(), nb::arg("n_threads"))
        .def_prop_ro("row_table", [](const Predictor& self) { return nb::capsule(self.row_table()); });
    module.def(
        "compact_predictor",
        [](Numbers centre, Matrix local, Matrix directions, Numbers offsets, Keys seeds, bool grid,
           bool signs, Words starts, Words tags, int degree, Array<const Coefficient, 3> coefficients,
           Array<const Weight, 1> weights, const std::string& combine) {
            return Predictor(centre, local, directions, offsets, seeds, grid, signs, starts, tags, degree,
                             coefficients, weights, combine);
        },
        nb::arg("centre"), nb::arg("local"), nb::arg("directions"), nb::arg("offsets"), nb::arg("seeds"),
        nb::arg("grid"), nb::arg("signs"), nb::arg("starts").noconvert(), nb::arg("tags").noconvert(),
        nb::arg("degree"), nb::arg("coefficients").noconvert(), nb::arg("weights").noconvert(),
        nb::arg("combine"));
}

}  // namespace

SPARSACT_BINDINGS(module) {
    bind_predictor<double, double>(module, "_CompactDoubles");
    bind_predictor<float, float>(module, "_CompactFloats");
    bind_predictor<float, std::uint16_t>(module, "_CompactCountedFloats");
}

}  // namespace sparsact

#endif
