// The predictors of hash tables as Python holds them.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bind.hpp"
#include "bind_buckets.hpp"
#include "bucket_values.hpp"

namespace sparsact {

using Records = Array<double, 2>;
using Values = Array<double, 2>;
using Totals = Array<double, 1>;
using SlotWords = Array<const std::uint64_t, 2>;
using Stale = Array<std::uint8_t, 1>;
using Counts = Array<const std::int64_t, 1>;

// All arguments of bucket_values but the rows. It owns its arrays, and writes into the records of buckets
// that are still unsolved.
class BucketPredictor {
  public:
    BucketPredictor(Numbers centre, Matrix local, Matrix directions, Numbers offsets, Keys seeds, bool grid,
                    bool signs, SlotWords slots, int degree, Records records, Matrix trend,
                    const std::string& combine, Stale stale, Counts counts, Matrix sums, Numbers unit,
                    std::int64_t least, double alpha)
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
          stale_(stale),
          counts_(counts) {
        const std::size_t targets = trend.shape(1), n = records.shape(0);
        const Unsolved unsolved{
            stale.shape(0) ? stale.data() : nullptr, counts.data(), sums.data(), unit.data(), least, alpha};
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
    Records records_;
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

inline const RowTable* row_table(nb::handle capsule) {
    return static_cast<const RowTable*>(nb::cast<nb::capsule>(capsule).data());
}

}  // namespace sparsact
