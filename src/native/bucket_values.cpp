#include "bucket_values.hpp"

#ifdef SPARSACT_ISA

#include <algorithm>

#include "bucket_refresh.hpp"
#include "hashed_rows.hpp"
#include "monomials.hpp"
#include "polynomials.hpp"
#include "single_row.hpp"
#include "threads.hpp"

namespace sparsact::SPARSACT_ISA {

namespace {

constexpr std::size_t TABLES = 8;      // looked up together for a block of rows: memory answers meanwhile
constexpr std::size_t CACHE_LINE = 8;  // numbers
constexpr std::size_t MOST_LINES = 8;  // asked for ahead; longer runs the processor foresees
static_assert(TABLES * BLOCK <= Refresher::MOST, "a block's buckets are solved in one call");

SPARSACT_INLINE void prefetch_record(const BucketPolynomials& buckets, std::uint64_t number) {
    const double *own = buckets.polynomial(number), *last = own + buckets.size();
    for (const double *at = own, *stop = std::min(last, own + MOST_LINES * CACHE_LINE); at < stop;
         at += CACHE_LINE)
        prefetch(at, 0);
    prefetch(last, 0);
}

// Adds a bucket's polynomial times its weight to the values, or as it is where tables answer alone.
template <class Coordinate>
SPARSACT_INLINE void add_polynomial(const BucketPolynomials& buckets, std::size_t p, const double* own,
                                    double weight, Coordinate coordinate, double* value, double* values) {
    const std::size_t targets = buckets.targets;
    std::fill_n(value, targets, 0.0);
    for_each_monomial<double>(p, buckets.degree, coordinate, [&](std::size_t a, double phi) {
        for (std::size_t k = 0; k < targets; ++k) value[k] += phi * own[a * targets + k];
    });
    for (std::size_t k = 0; k < targets; ++k) values[k] += weight * value[k];
}

// Values at a block of rows, a few tables at a time.
class Averages {
  public:
    Averages(const Hashes& hashes, const BucketPolynomials& buckets, Combine combine)
        : hashes_(hashes),
          buckets_(buckets),
          combine_(combine),
          search_(buckets.slots),
          refresher_(buckets_, hashes.p),
          rows_(hashes),
          features_(hashes.grid ? std::min(TABLES, hashes.tables) * hashes.p * BLOCK : 0),
          value_(buckets.targets),
          line_(buckets.targets * BLOCK),
          zeros_(buckets.stride()),
          sums_(hashes.p, buckets.degree, combine == Combine::first) {
        std::fill_n(zeros_.data(), buckets.stride(), 0.0);
    }

    void fill(const double* X, std::size_t rows, const double* trend, double* values, double* total) {
        const std::size_t targets = buckets_.targets;
        rows_.read(X, rows);
        std::fill_n(values, rows * targets, 0.0);
        std::fill_n(total, rows, 0.0);
        sums_.clear();
        for (std::size_t first = 0; first < hashes_.tables; first += TABLES) {
            const std::size_t tables = std::min(TABLES, hashes_.tables - first);
            hash(first, tables, rows);
            look_up(tables, rows);
            add(tables, rows, values, total);
        }
        rows_.times(trend, targets, line_.data());
        for (std::size_t r = 0; targets == 1 && r < rows; ++r) {
            values[r] = sums_.value(r);
            total[r] = sums_.total(r);
        }
        for (std::size_t r = 0; r < rows; ++r)
            for (std::size_t k = 0; k < targets; ++k) {
                double& value = values[r * targets + k];
                if (combine_ == Combine::average) value /= total[r] > 0.0 ? total[r] : 1.0;
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
        for (std::size_t t = 0; t < tables; ++t) {
            for (std::size_t r = 0; r < rows; ++r) {
                const std::uint64_t number = search_.number(keys_[t * BLOCK + r]);
                keys_[t * BLOCK + r] = number;
                if (number < buckets_.n) prefetch_record(buckets_, number);
            }
            std::fill(keys_ + t * BLOCK + rows, keys_ + (t + 1) * BLOCK, NOWHERE);
        }
        refresher_.refresh(keys_, tables * BLOCK);
    }

    void add(std::size_t tables, std::size_t rows, double* values, double* total) {
        for (std::size_t t = 0; t < tables; ++t) {
            const double* v = hashes_.grid ? features(t) : rows_.Z();
            if (buckets_.targets == 1) {
                const std::uint64_t* numbers = keys_ + t * BLOCK;
                const auto own = [&](std::size_t r) {
                    return numbers[r] < buckets_.n ? buckets_.polynomial(numbers[r]) : zeros_.data();
                };
                sums_.add(rows, v, own, [&](std::size_t r) { return own(r)[buckets_.size()]; });
                continue;
            }
            for (std::size_t r = 0; r < rows; ++r) {
                const std::uint64_t number = keys_[t * BLOCK + r];
                if (number >= buckets_.n) continue;
                const double* own = buckets_.records + number * buckets_.stride();
                const double weight = share(combine_, own[buckets_.size()], total[r]);
                if (weight > 0.0)
                    add_polynomial(
                        buckets_, hashes_.p, own, weight, [&](std::size_t j) { return v[j * BLOCK + r]; },
                        value_.data(), values + r * buckets_.targets);
            }
        }
    }

    const Hashes hashes_;
    const BucketPolynomials buckets_;
    const Combine combine_;
    const Search search_;
    Refresher refresher_;
    HashedRows rows_;
    Scratch<double> features_, value_, line_, zeros_;
    BlockSums sums_;
    alignas(64) std::uint64_t keys_[TABLES * BLOCK];
};

}  // namespace

void bucket_values(const double* X, std::size_t m, const Hashes& hashes, const BucketPolynomials& buckets,
                   const double* trend, Combine combine, double* values, double* total, int n_threads) {
    const std::size_t blocks = (m + BLOCK - 1) / BLOCK;
    const auto threads = static_cast<std::size_t>(available_threads(n_threads));
    const std::size_t tasks = std::min(blocks, threads);
    in_parallel(static_cast<int>(threads), tasks, [&](std::size_t task) {
        Averages averages(hashes, buckets, combine);
        for (std::size_t block = task * blocks / tasks; block < (task + 1) * blocks / tasks; ++block) {
            const std::size_t first = block * BLOCK;
            averages.fill(X + first * hashes.d, std::min(BLOCK, m - first), trend,
                          values + first * buckets.targets, total + first);
        }
    });
}

namespace {

class BucketRowTable : public RowTable {
  public:
    BucketRowTable(const Hashes& hashes, const BucketPolynomials& buckets, const double* trend,
                   Combine combine)
        : hashes_(hashes), buckets_(buckets), search_(buckets_.slots), trend_(trend), combine_(combine) {}

    void hash(const double* x, RowSpace& row) const override { SingleRow::put(row, hashes_, x, search_); }

    void look_up(RowSpace& row) const override {
        SingleRow::in(row).look_up(search_, [&](std::uint64_t number) {
            if (number < buckets_.n) prefetch_record(buckets_, number);
        });
    }

    double value(RowSpace& space, double& behind) const override {
        SingleRow& row = SingleRow::in(space);
        Refresher refresher(buckets_, hashes_.p);
        for (std::size_t t = 0; t < hashes_.tables; t += Refresher::MOST)
            refresher.refresh(row.numbers() + t, std::min(Refresher::MOST, hashes_.tables - t));
        const double value = row.value(buckets_, combine_, behind) + row.times(trend_);
        row.~SingleRow();
        return value;
    }

    std::size_t columns() const override { return hashes_.d; }

  private:
    const Hashes hashes_;
    const BucketPolynomials buckets_;
    const Search search_;
    const double* trend_;
    const Combine combine_;
};

}  // namespace

std::unique_ptr<RowTable> bucket_row_table(const Hashes& hashes, const BucketPolynomials& buckets,
                                           const double* trend, Combine combine) {
    return std::make_unique<BucketRowTable>(hashes, buckets, trend, combine);
}

}  // namespace sparsact::SPARSACT_ISA

#else

#include "bind_values.hpp"

namespace sparsact {

SPARSACT_BINDINGS(module) {
    nb::class_<BucketPredictor>(module, "BucketPredictor")
        .def(nb::init<Numbers, Matrix, Matrix, Numbers, Keys, bool, bool, SlotWords, int, Records, Matrix,
                      const std::string&, Stale, Counts, Matrix, Numbers, std::int64_t, double>(),
             nb::arg("centre"), nb::arg("local"), nb::arg("directions"), nb::arg("offsets"), nb::arg("seeds"),
             nb::arg("grid"), nb::arg("signs"), nb::arg("slots"), nb::arg("degree"),
             nb::arg("records").noconvert(), nb::arg("trend"), nb::arg("combine"),
             nb::arg("stale").noconvert(), nb::arg("counts").noconvert(), nb::arg("sums").noconvert(),
             nb::arg("unit"), nb::arg("least"), nb::arg("alpha"))
        .def("__call__", &BucketPredictor::operator(), nb::arg("X").noconvert(),
             nb::arg("values").noconvert(), nb::arg("total").noconvert(), nb::arg("n_threads"))
        .def_prop_ro("row_table", [](const BucketPredictor& self) { return nb::capsule(self.row_table()); });
    nb::class_<RowPredictor>(module, "RowPredictor")
        .def(
            "__init__",
            [](RowPredictor* self, nb::list tables, nb::object backup, double level, double low, double high,
               Numbers centre, Numbers slopes) {
                std::vector<const RowTable*> parts;
                for (nb::handle table : tables) parts.push_back(row_table(table.attr("row_table")));
                const RowTable* coarse = backup.is_none() ? nullptr : row_table(backup.attr("row_table"));
                new (self) RowPredictor(std::move(parts), coarse, level, low, high, centre, slopes);
            },
            nb::arg("tables"), nb::arg("backup").none(), nb::arg("level"), nb::arg("low"), nb::arg("high"),
            nb::arg("centre"), nb::arg("slopes"), nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>())
        .def("__call__", &RowPredictor::operator(), nb::arg("x"));
}

}  // namespace sparsact

#endif
