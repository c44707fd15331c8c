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
constexpr std::size_t MOST_LINES = 8;  // asked for ahead; longer runs the processor sees by itself
static_assert(TABLES * BLOCK <= Refresher::MOST, "a block's buckets are solved in one call");

SPARSACT_INLINE void prefetch_record(const BucketPolynomials& buckets, std::uint64_t number) {
    const double* own = buckets.records + number * buckets.stride();
    for (std::size_t k = 0; k < std::min(buckets.stride(), MOST_LINES * CACHE_LINE); k += CACHE_LINE)
        prefetch(own, k);
    prefetch(own, buckets.size());
}

// Adds a bucket's polynomial times its weight to the values, or as it is where tables answer alone.
template <class Coordinate>
SPARSACT_INLINE void add_polynomial(const BucketPolynomials& buckets, std::size_t p, const double* own,
                                    double weight, Coordinate coordinate, double* value, double* values) {
    const std::size_t targets = buckets.targets;
    if (targets == 1) {
        double total = 0.0;
        for_each_monomial<double>(p, buckets.degree, coordinate,
                                  [&](std::size_t a, double phi) { total += phi * own[a]; });
        *values += weight * total;
        return;
    }
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

#include <nanobind/stl/string.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "bind.hpp"
#include "bind_buckets.hpp"

namespace sparsact {

namespace {

using Records = Array<double, 2>;
using Values = Array<double, 2>;
using Totals = Array<double, 1>;
using SlotWords = Array<const std::uint64_t, 2>;
using Stale = Array<std::uint8_t, 1>;
using Counts = Array<const std::int64_t, 1>;

Combine combine_of(const std::string& name) {
    return name == "sum" ? Combine::sum : name == "first" ? Combine::first : Combine::average;
}

// All that bucket_values takes but the rows. It holds its arrays, and writes into those of buckets to be
// solved.
class BucketPredictor {
  public:
    BucketPredictor(Numbers centre, Matrix local, Matrix directions, Numbers offsets, Keys seeds, bool grid,
                    bool signs, SlotWords slots, int degree, Records records, Matrix trend,
                    const std::string& combine, Stale stale, Counts counts, Matrix sums, Numbers unit,
                    Records residual, std::int64_t least, double alpha)
        : hashes_(hashes_of(centre, local, directions, offsets, seeds, grid, signs)),
          combine_(combine_of(combine)),
          trend_values_(trend.data()),
          centre_(centre),
          offsets_(offsets),
          unit_(unit),
          local_(local),
          directions_(directions),
          trend_(trend),
          sums_(sums),
          seeds_(seeds),
          slots_(slots),
          records_(records),
          residual_(residual),
          stale_(stale),
          counts_(counts) {
        const std::size_t targets = trend.shape(1), n = records.shape(0);
        const Unsolved unsolved{stale.shape(0) ? stale.data() : nullptr,
                                counts.data(),
                                sums.data(),
                                unit.data(),
                                residual.data(),
                                least,
                                alpha};
        buckets_ = {{slots.data(), slots.shape(0)},
                    records.data(),
                    n,
                    (records.shape(1) - 1) / targets,
                    targets,
                    degree,
                    unsolved};
        row_table_ = SPARSACT_DISPATCH(bucket_row_table, hashes_, buckets_, trend_values_, combine_);
    }

    void operator()(Matrix X, Values values, Totals total, int n_threads) const {
        const double* rows = X.data();
        const std::size_t m = X.shape(0);
        double *out = values.data(), *behind = total.data();
        nb::gil_scoped_release unlocked;
        SPARSACT_DISPATCH(bucket_values, rows, m, hashes_, buckets_, trend_values_, combine_, out, behind,
                          n_threads);
    }

    const RowTable* row_table() const { return row_table_.get(); }

  private:
    Hashes hashes_;
    BucketPolynomials buckets_;
    Combine combine_;
    const double* trend_values_;
    std::unique_ptr<RowTable> row_table_;
    // They keep the memory alive.
    Numbers centre_, offsets_, unit_;
    Matrix local_, directions_, trend_, sums_;
    Keys seeds_;
    SlotWords slots_;
    Records records_, residual_;
    Stale stale_;
    Counts counts_;
};

// One row at a time: the sum of a line, some tables and a level, a backup where the last of them is empty,
// and limits.
class RowPredictor {
    static constexpr std::size_t AT_ONCE = 4;  // tables that take turns

  public:
    // With slopes (columns,) about a centre, the level and these come first; else the level comes last.
    RowPredictor(std::vector<const RowTable*> tables, const RowTable* backup, double level, double low,
                 double high, Numbers centre, Numbers slopes)
        : tables_(std::move(tables)),
          backup_(backup),
          level_(level),
          low_(low),
          high_(high),
          centre_(centre),
          slopes_(slopes) {}

    // None for what is no row of the right numbers, has no finite value, or falls into empty buckets without
    // a backup.
    nb::object operator()(nb::handle x) const {
        Py_buffer view;
        if (PyObject_GetBuffer(x.ptr(), &view, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS) != 0) {
            PyErr_Clear();
            return nb::none();
        }
        double value = 0.0;
        const bool found = is_row(view) && evaluate(static_cast<const double*>(view.buf), value);
        PyBuffer_Release(&view);
        return found ? nb::object(nb::float_(value)) : nb::none();
    }

  private:
    // (d,), or (1, d).
    bool is_row(const Py_buffer& view) const {
        const auto d = static_cast<Py_ssize_t>(tables_.front()->columns());
        return view.format && view.format[0] == 'd' && !view.format[1] && view.ndim >= 1 && view.ndim <= 2 &&
               view.len == d * Py_ssize_t{8} && view.shape[view.ndim - 1] == d &&
               reinterpret_cast<std::uintptr_t>(view.buf) % alignof(double) == 0;
    }

    bool evaluate(const double* x, double& value) const {
        double behind = 0.0;
        const std::size_t n = slopes_.shape(0);
        for (std::size_t i = 0; i < n; ++i) value += (x[i] - centre_.data()[i]) * slopes_.data()[i];
        if (n) value = level_ + value;
        RowSpace rows[AT_ONCE];
        for (std::size_t first = 0; first < tables_.size(); first += AT_ONCE) {
            const std::size_t here = std::min(AT_ONCE, tables_.size() - first);
            for (std::size_t i = 0; i < here; ++i) tables_[first + i]->hash(x, rows[i]);
            for (std::size_t i = 0; i < here; ++i) tables_[first + i]->look_up(rows[i]);
            for (std::size_t i = 0; i < here; ++i) {
                const double own = tables_[first + i]->value(rows[i], behind);
                value = first + i || n ? value + own : own;
            }
        }
        if (!n) value += level_;
        if (behind == 0.0) {
            if (!backup_) return false;
            backup_->hash(x, rows[0]);
            backup_->look_up(rows[0]);
            value += backup_->value(rows[0], behind);
        }
        if (!std::isfinite(value)) return false;
        value = value < low_ ? low_ : value > high_ ? high_ : value;
        return true;
    }

    std::vector<const RowTable*> tables_;
    const RowTable* backup_;
    double level_, low_, high_;
    Numbers centre_, slopes_;
};

const RowTable* row_table(nb::handle capsule) {
    return static_cast<const RowTable*>(nb::cast<nb::capsule>(capsule).data());
}

}  // namespace

SPARSACT_BINDINGS(module) {
    nb::class_<BucketPredictor>(module, "BucketPredictor")
        .def(nb::init<Numbers, Matrix, Matrix, Numbers, Keys, bool, bool, SlotWords, int, Records, Matrix,
                      const std::string&, Stale, Counts, Matrix, Numbers, Records, std::int64_t, double>(),
             nb::arg("centre"), nb::arg("local"), nb::arg("directions"), nb::arg("offsets"), nb::arg("seeds"),
             nb::arg("grid"), nb::arg("signs"), nb::arg("slots"), nb::arg("degree"),
             nb::arg("records").noconvert(), nb::arg("trend"), nb::arg("combine"),
             nb::arg("stale").noconvert(), nb::arg("counts").noconvert(), nb::arg("sums").noconvert(),
             nb::arg("unit"), nb::arg("residual").noconvert(), nb::arg("least"), nb::arg("alpha"))
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
