// What changes a model of one target by one row, as Python holds it.
#pragma once

#include <cmath>
#include <cstring>

#include "bind_values.hpp"
#include "mixing.hpp"
#include "row_update.hpp"
#include "slots.hpp"

namespace sparsact {

using SPARSACT_ISA::Search;

inline constexpr double MAX_SIZE = 1e305;  // of numbers and targets, as checked_inputs.py has it

// The sums of a table as Python holds them.
class TableSums {
  public:
    TableSums(Numbers centre, Matrix local, Matrix directions, Numbers offsets, Keys seeds, bool grid,
              bool signs, SlotWords slots, int degree, Array<std::int64_t, 1> counts, Records sums,
              Stale stale)
        : numbers_{centre, offsets},
          matrices_{local, directions},
          seeds_(seeds),
          slots_(slots),
          counts_(counts),
          sums_(sums),
          stale_(stale),
          change_(made({hashes_of(centre, local, directions, offsets, seeds, grid, signs),
                        {slots.data(), slots.shape(0)},
                        counts.data(),
                        sums.data(),
                        stale.shape(0) ? stale.data() : nullptr,
                        counts.shape(0),
                        degree})) {}

    RowSums& change() const { return *change_; }

  private:
    static std::unique_ptr<RowSums> made(const UpdatedTable& table) {
        return SPARSACT_DISPATCH(row_sums, table);
    }

    Numbers numbers_[2];
    Matrix matrices_[2];
    Keys seeds_;
    SlotWords slots_;
    Array<std::int64_t, 1> counts_;
    Records sums_;
    Stale stale_;
    std::unique_ptr<RowSums> change_;
};

// A row of numbers in a buffer of Python, while this lives; null for anything else.
class Buffer {
  public:
    Buffer(nb::handle x, std::size_t count) {
        held_ = PyObject_GetBuffer(x.ptr(), &view_, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS) == 0;
        if (!held_) {
            PyErr_Clear();
            return;
        }
        const bool right = view_.format && view_.format[0] == 'd' && !view_.format[1] && view_.ndim >= 1 &&
                           view_.shape[0] == 1 && view_.len == static_cast<Py_ssize_t>(8 * count) &&
                           reinterpret_cast<std::uintptr_t>(view_.buf) % alignof(double) == 0;
        if (!right) return;
        numbers_ = static_cast<const double*>(view_.buf);
        for (std::size_t i = 0; i < count; ++i)
            if (!(std::fabs(numbers_[i]) <= MAX_SIZE)) numbers_ = nullptr, i = count;
    }
    ~Buffer() {
        if (held_) PyBuffer_Release(&view_);
    }
    Buffer(const Buffer&) = delete;
    const double* numbers() const { return numbers_; }

  private:
    Py_buffer view_{};
    bool held_ = false;
    const double* numbers_ = nullptr;
};

// Rows by key: open slots that may take in more.
class KnownRows {
  public:
    KnownRows(Array<std::uint64_t, 2> slots, Array<std::uint64_t, 1> keys, std::size_t n)
        : slots_(slots), keys_(keys), n_(n) {}

    std::uint64_t find(std::uint64_t key) const {
        return Search({slots_.data(), slots_.shape(0)}).number(key);
    }
    bool has_room(std::size_t most) const {
        return n_ < keys_.shape(0) && n_ < most && 2 * (n_ + 1) <= slots_.shape(0);
    }
    std::uint64_t insert(std::uint64_t key) {
        const Search search({slots_.data(), slots_.shape(0)});
        std::size_t at = search.home(key);
        while (slots_.data()[2 * at + 1] != NOWHERE) at = search.after(at);
        slots_.data()[2 * at] = keys_.data()[n_] = key;
        slots_.data()[2 * at + 1] = n_;
        return n_++;
    }
    std::size_t size() const { return n_; }

  private:
    Array<std::uint64_t, 2> slots_;
    Array<std::uint64_t, 1> keys_;
    std::size_t n_;
};

// Adds one row to a model of one target, or takes it away, all of it in one call.
class RowUpdater {
  public:
    RowUpdater(const TableSums& table, const TableSums* backup, nb::list stages,
               Array<const std::int64_t, 1> columns, std::size_t n_columns, double level, double unit,
               Numbers centre, Numbers slopes, double finest, double low, double high, nb::object rows,
               nb::object learned, Array<double, 1> totals)
        : table_(table.change()),
          backup_(backup ? &backup->change() : nullptr),
          columns_(columns),
          n_columns_(n_columns),
          level_(level),
          unit_(unit),
          finest_(finest),
          low_(low),
          high_(high),
          centre_(centre),
          slopes_(slopes),
          totals_(totals),
          slots_(rows.attr("index").attr("_slots")),
          copies_(nb::cast<Array<std::int64_t, 1> >(rows.attr("copies"))),
          targets_(nb::cast<Array<double, 2> >(rows.attr("targets"))),
          known_(nb::cast<Array<std::uint64_t, 2> >(slots_),
                 nb::cast<Array<std::uint64_t, 1> >(rows.attr("index").attr("_keys")), nb::len(rows)),
          selected_(centre.shape(0)) {
        for (nb::handle stage : stages) stages_.push_back(row_table(stage.attr("row_table")));
        if (learned.is_none()) return;
        learned_slots_ = nb::cast<SlotWords>(learned.attr("index").attr("slots"));
        learned_values_ = nb::cast<Matrix>(learned.attr("_values"));
    }

    // False, and nothing changed, unless the row changes sums alone, and no other thread reads them:
    // `readers` is the list of the one predictor that may.
    bool operator()(nb::list readers, nb::object table, nb::handle x, nb::handle y, int sign) {
        const Buffer row(x, n_columns_), target(y, 1);
        if (!row.numbers() || !target.numbers() || !(low_ < *target.numbers() && *target.numbers() < high_))
            return false;
        nb::object index = table.attr("rows").attr("index");
        if (nb::len(readers) != 1 || Py_REFCNT(PyList_GetItem(readers.ptr(), 0)) != 1 ||
            !index.attr("_slots").is(slots_))
            return false;
        const auto n_rows = nb::cast<std::int64_t>(table.attr("n_rows"));
        if (sign < 0 && (n_rows < 2 || known_.size() > 2 * static_cast<std::size_t>(n_rows - 1)))
            return false;
        if (!change(row.numbers(), *target.numbers(), sign, n_rows, table, index)) return false;
        auto kept = nb::borrow<nb::dict>(readers[0].attr("__dict__"));
        if (kept.contains("_spread")) nb::del(kept["_spread"]);  // variances as they were
        return true;
    }

  private:
    bool change(const double* x, double y, int sign, std::int64_t n_rows, nb::handle table,
                nb::handle index) {
        const std::uint64_t key = key_of(x, y, true);
        std::uint64_t number = known_.find(key);
        const double* selected = select(x);
        double left_out = 0.0;
        if (!stages_.empty() && !learned(key_of(x, y, false), left_out)) left_out = frozen(selected);
        if (sign < 0 ? !has_copies(number) : number == NOWHERE && !known_.has_room(copies_.shape(0)))
            return false;
        const double own = y - left_out;
        double line = 0.0;
        for (std::size_t i = 0; i < slopes_.shape(0); ++i)
            line += (selected[i] - centre_.data()[i]) * slopes_.data()[i];
        const double residual = (own - level_ - line) / unit_;
        RowSpace spaces[2];
        table_.hash(selected, spaces[0]);
        if (backup_) backup_->hash(selected, spaces[1]);
        const bool possible = table_.find(spaces[0], sign, residual, finest_) &
                              (!backup_ || backup_->find(spaces[1], sign, residual, 0.0));
        if (possible) {
            table.attr("n_rows") = n_rows + sign;  // what may fail comes first
            if (number == NOWHERE) {
                index.attr("_n") = known_.size() + 1;
                number = known_.insert(key);
            }
            if (sign > 0) targets_.data()[number] = y;
            copies_.data()[number] += sign;
            totals_.data()[0] += sign;
            totals_.data()[1] += sign * ((own - level_) / unit_);
            table_.add(spaces[0], sign, residual);
            if (backup_) backup_->add(spaces[1], sign, residual);
        }
        table_.drop(spaces[0]);
        if (backup_) backup_->drop(spaces[1]);
        return possible;
    }

    // Key of the row's words with its target, and of a weight of 1; -0.0 counts as 0.0.
    std::uint64_t key_of(const double* x, double y, bool weighted) const {
        std::uint64_t key = SPARSACT_ISA::STEP;
        const auto mix = [&](double number) {
            std::uint64_t word;
            number += 0.0;
            std::memcpy(&word, &number, sizeof word);
            key = SPARSACT_ISA::mixed(key, word);
        };
        for (std::size_t i = 0; i < n_columns_; ++i) mix(x[i]);
        mix(y);
        if (weighted) mix(1.0);
        return SPARSACT_ISA::finished(key);
    }

    const double* select(const double* x) {
        if (!columns_.shape(0)) return x;
        for (std::size_t i = 0; i < columns_.shape(0); ++i) selected_[i] = x[columns_.data()[i]];
        return selected_.data();
    }

    bool has_copies(std::uint64_t number) const {
        return number < copies_.shape(0) && copies_.data()[number] > 0;
    }

    // Whether the frozen part was learned from the row; its value without it.
    bool learned(std::uint64_t own, double& value) const {
        if (!learned_values_.is_valid()) return false;
        const std::uint64_t at = Search({learned_slots_.data(), learned_slots_.shape(0)}).number(own);
        if (at >= learned_values_.shape(0)) return false;
        value = learned_values_.data()[at];
        return true;
    }

    double frozen(const double* x) const {
        double total = 0.0, behind;
        RowSpace row;
        for (std::size_t i = 0; i < stages_.size(); ++i) {
            stages_[i]->hash(x, row);
            stages_[i]->look_up(row);
            const double own = stages_[i]->value(row, behind);
            total = i ? total + own : own;
        }
        return total;
    }

    RowSums& table_;
    RowSums* backup_;
    std::vector<const RowTable*> stages_;
    Array<const std::int64_t, 1> columns_;
    std::size_t n_columns_;
    double level_, unit_, finest_, low_, high_;
    Numbers centre_, slopes_;
    Array<double, 1> totals_;
    nb::object slots_;
    Array<std::int64_t, 1> copies_;
    Array<double, 2> targets_;
    KnownRows known_;
    SlotWords learned_slots_;
    Matrix learned_values_;
    std::vector<double> selected_;
};

}  // namespace sparsact
