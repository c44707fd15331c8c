// Values at rows: hash, look up, evaluate, average over tables. The same bits on every instruction set and
// number of threads, and for a row whatever rows stand beside it: tables come in order.
#include "hashing.hpp"
#include "slots.hpp"

namespace sparsact {

// The polynomials of n buckets. A slot with another number is a miss, as is a bucket of weight 0.
struct BucketPolynomials {
    Slots slots;
    const double* coefficients;  // (n, D, targets)
    const double* weights;       // (n,)
    std::size_t n, D, targets;
    int degree;
};

SPARSACT_DECLARE(
    // values (m, targets) of X (m, d): the rows times trend (d, targets), and the weighted average (or sum)
    // over tables; total (m,), the weight behind each. n_threads <= 0: as many as OpenMP would take.
    void bucket_values(const double* X, std::size_t m, const Hashes& hashes, const BucketPolynomials& buckets,
                       const double* trend, bool average, double* values, double* total, int n_threads);)

}  // namespace sparsact

#ifdef SPARSACT_ISA

#include <algorithm>

#include "hashed_rows.hpp"
#include "monomials.hpp"
#include "threads.hpp"

namespace sparsact::SPARSACT_ISA {

namespace {

constexpr std::size_t TABLES = 8;      // looked up together for a block of rows: memory answers meanwhile
constexpr std::size_t CACHE_LINE = 8;  // numbers
constexpr std::size_t MOST_LINES = 8;  // asked for ahead; longer runs the processor sees by itself

// Values at a block of rows, a few tables at a time.
class Averages {
  public:
    Averages(const Hashes& hashes, const BucketPolynomials& buckets)
        : hashes_(hashes),
          buckets_(buckets),
          search_(buckets.slots),
          rows_(hashes),
          features_(hashes.grid ? std::min(TABLES, hashes.tables) * hashes.p * BLOCK : 0),
          value_(buckets.targets),
          line_(buckets.targets * BLOCK) {}

    void fill(const double* X, std::size_t rows, const double* trend, bool average, double* values,
              double* total) {
        const std::size_t targets = buckets_.targets;
        rows_.read(X, rows);
        std::fill_n(values, rows * targets, 0.0);
        std::fill_n(total, rows, 0.0);
        for (std::size_t first = 0; first < hashes_.tables; first += TABLES) {
            const std::size_t tables = std::min(TABLES, hashes_.tables - first);
            hash(first, tables, rows);
            look_up(tables, rows);
            add(tables, rows, values, total);
        }
        rows_.times(trend, targets, line_.data());
        for (std::size_t r = 0; r < rows; ++r)
            for (std::size_t k = 0; k < targets; ++k) {
                double& value = values[r * targets + k];
                if (average) value /= total[r] > 0.0 ? total[r] : 1.0;
                value += line_[k * BLOCK + r];
            }
    }

  private:
    double* features(std::size_t t) { return features_.data() + t * hashes_.p * BLOCK; }

    void hash(std::size_t first, std::size_t tables, std::size_t rows) {
        for (std::size_t t = 0; t < tables; ++t) {
            rows_.hash(first + t, keys_ + t * BLOCK, hashes_.grid ? features(t) : nullptr);
            for (std::size_t r = 0; r < rows; ++r) search_.prefetch_home(keys_[t * BLOCK + r]);
        }
    }

    // Numbers of buckets take the place of keys.
    void look_up(std::size_t tables, std::size_t rows) {
        const std::size_t size = buckets_.D * buckets_.targets;
        for (std::size_t t = 0; t < tables; ++t)
            for (std::size_t r = 0; r < rows; ++r) {
                const std::uint64_t number = search_.number(keys_[t * BLOCK + r]);
                keys_[t * BLOCK + r] = number;
                if (number >= buckets_.n) continue;
                prefetch(buckets_.weights, number);
                const double* own = buckets_.coefficients + number * size;
                for (std::size_t k = 0; k < std::min(size, MOST_LINES * CACHE_LINE); k += CACHE_LINE)
                    prefetch(own, k);
                prefetch(own, size - 1);
            }
    }

    void add(std::size_t tables, std::size_t rows, double* values, double* total) {
        for (std::size_t t = 0; t < tables; ++t) {
            const double* v = hashes_.grid ? features(t) : rows_.Z();
            for (std::size_t r = 0; r < rows; ++r) {
                const std::uint64_t number = keys_[t * BLOCK + r];
                if (number >= buckets_.n) continue;
                const double weight = buckets_.weights[number];
                total[r] += weight < 0.0 ? 0.0 : weight;
                if (weight > 0.0) add_bucket(number, weight, v + r, values + r * buckets_.targets);
            }
        }
    }

    SPARSACT_INLINE void add_bucket(std::size_t number, double weight, const double* v, double* values) {
        const std::size_t targets = buckets_.targets;
        const double* own = buckets_.coefficients + number * buckets_.D * targets;
        const auto coordinate = [&](std::size_t j) { return v[j * BLOCK]; };
        if (targets == 1) {
            double value = 0.0;
            for_each_monomial<double>(hashes_.p, buckets_.degree, coordinate,
                                      [&](std::size_t a, double phi) { value += phi * own[a]; });
            *values += weight * value;
            return;
        }
        std::fill_n(value_.data(), targets, 0.0);
        for_each_monomial<double>(hashes_.p, buckets_.degree, coordinate, [&](std::size_t a, double phi) {
            for (std::size_t k = 0; k < targets; ++k) value_[k] += phi * own[a * targets + k];
        });
        for (std::size_t k = 0; k < targets; ++k) values[k] += weight * value_[k];
    }

    const Hashes hashes_;
    const BucketPolynomials buckets_;
    const Search search_;
    HashedRows rows_;
    Scratch<double> features_, value_, line_;
    alignas(64) std::uint64_t keys_[TABLES * BLOCK];
};

}  // namespace

void bucket_values(const double* X, std::size_t m, const Hashes& hashes, const BucketPolynomials& buckets,
                   const double* trend, bool average, double* values, double* total, int n_threads) {
    const std::size_t blocks = (m + BLOCK - 1) / BLOCK;
    const auto threads = static_cast<std::size_t>(available_threads(n_threads));
    const std::size_t tasks = std::min(blocks, threads);
    in_parallel(static_cast<int>(threads), tasks, [&](std::size_t task) {
        Averages averages(hashes, buckets);
        for (std::size_t block = task * blocks / tasks; block < (task + 1) * blocks / tasks; ++block) {
            const std::size_t first = block * BLOCK;
            averages.fill(X + first * hashes.d, std::min(BLOCK, m - first), trend, average,
                          values + first * buckets.targets, total + first);
        }
    });
}

}  // namespace sparsact::SPARSACT_ISA

#else

#include "bind.hpp"
#include "bind_buckets.hpp"

namespace sparsact {

namespace {

using Values = Array<double, 2>;
using Totals = Array<double, 1>;

BucketPolynomials polynomials_of(const Array<const std::uint64_t, 2>& slots, int degree,
                                 const Cube& coefficients, const Numbers& weights) {
    return {{slots.data(), slots.shape(0)}, coefficients.data(),   weights.data(), weights.shape(0),
            coefficients.shape(1),          coefficients.shape(2), degree};
}

// All that bucket_values takes but the rows: a call then converts three arrays, not fourteen.
class BucketPredictor {
  public:
    BucketPredictor(Numbers centre, Matrix local, Matrix directions, Numbers offsets, Keys seeds, bool grid,
                    bool signs, Array<const std::uint64_t, 2> slots, int degree, Cube coefficients,
                    Numbers weights, Matrix trend, bool average)
        : hashes_(hashes_of(centre, local, directions, offsets, seeds, grid, signs)),
          buckets_(polynomials_of(slots, degree, coefficients, weights)),
          trend_values_(trend.data()),
          average_(average),
          centre_(centre),
          offsets_(offsets),
          weights_(weights),
          local_(local),
          directions_(directions),
          trend_(trend),
          seeds_(seeds),
          slots_(slots),
          coefficients_(coefficients) {}

    void operator()(Matrix X, Values values, Totals total, int n_threads) const {
        const double* rows = X.data();
        const std::size_t m = X.shape(0);
        double *out = values.data(), *behind = total.data();
        nb::gil_scoped_release unlocked;
        SPARSACT_DISPATCH(bucket_values, rows, m, hashes_, buckets_, trend_values_, average_, out, behind,
                          n_threads);
    }

  private:
    Hashes hashes_;
    BucketPolynomials buckets_;
    const double* trend_values_;
    bool average_;
    // They keep the memory alive.
    Numbers centre_, offsets_, weights_;
    Matrix local_, directions_, trend_;
    Keys seeds_;
    Array<const std::uint64_t, 2> slots_;
    Cube coefficients_;
};

}  // namespace

SPARSACT_BINDINGS(module) {
    module.def(
        "bucket_values",
        [](Matrix X, Numbers centre, Matrix local, Matrix directions, Numbers offsets, Keys seeds, bool grid,
           bool signs, Array<const std::uint64_t, 2> slots, int degree, Cube coefficients, Numbers weights,
           Matrix trend, bool average, Values values, Totals total, int n_threads) {
            const BucketPredictor predict(centre, local, directions, offsets, seeds, grid, signs, slots,
                                          degree, coefficients, weights, trend, average);
            predict(X, values, total, n_threads);
        },
        nb::arg("X").noconvert(), nb::arg("centre"), nb::arg("local"), nb::arg("directions"),
        nb::arg("offsets"), nb::arg("seeds"), nb::arg("grid"), nb::arg("signs"), nb::arg("slots"),
        nb::arg("degree"), nb::arg("coefficients"), nb::arg("weights"), nb::arg("trend"), nb::arg("average"),
        nb::arg("values").noconvert(), nb::arg("total").noconvert(), nb::arg("n_threads"));
    nb::class_<BucketPredictor>(module, "BucketPredictor")
        .def(nb::init<Numbers, Matrix, Matrix, Numbers, Keys, bool, bool, Array<const std::uint64_t, 2>, int,
                      Cube, Numbers, Matrix, bool>(),
             nb::arg("centre"), nb::arg("local"), nb::arg("directions"), nb::arg("offsets"), nb::arg("seeds"),
             nb::arg("grid"), nb::arg("signs"), nb::arg("slots"), nb::arg("degree"), nb::arg("coefficients"),
             nb::arg("weights"), nb::arg("trend"), nb::arg("average"))
        .def("__call__", &BucketPredictor::operator(), nb::arg("X").noconvert(),
             nb::arg("values").noconvert(), nb::arg("total").noconvert(), nb::arg("n_threads"));
}

}  // namespace sparsact

#endif
