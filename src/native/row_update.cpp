#include "row_update.hpp"

#ifdef SPARSACT_ISA

#include <algorithm>
#include <cmath>

#include "monomials.hpp"
#include "single_row.hpp"

namespace sparsact::SPARSACT_ISA {

namespace {

constexpr std::size_t CACHE_LINE = 8;                                      // numbers
constexpr double LARGEST_SQUARE = 1e100, MOST_CELLS = 1125899906842624.0;  // as updates.py has them

// The tables that a row falls into, one a lane: each bucket has the bits of an update by `accumulate`.
class BucketRowSums : public RowSums {
  public:
    explicit BucketRowSums(const UpdatedTable& table)
        : table_(table),
          search_(table.slots),
          shape_(table.hashes.p, table.degree, 1),
          products_(table.hashes.p, 2 * table.degree),
          own_(shape_.values()) {}

    void hash(const double* x, RowSpace& row) const override {
        SingleRow::put(row, table_.hashes, x, search_);
    }

    bool find(RowSpace& space, int sign, double target, double finest) const override {
        SingleRow& row = SingleRow::in(space);
        double farthest = 1.0;
        for (std::size_t j = 0; j < table_.hashes.p; ++j)
            farthest = std::max(farthest, std::fabs(row.local()[j]));
        const double largest = std::max(farthest, std::fabs(target));
        bool held = largest * largest < LARGEST_SQUARE && farthest * finest < MOST_CELLS;
        row.look_up(search_, [&](std::uint64_t number) {
            held &= number < table_.n;
            if (number >= table_.n) return;
            prefetch(table_.counts, number);
            for (std::size_t k = 0; k < shape_.sums(); k += CACHE_LINE)
                prefetch(table_.sums + number * shape_.sums(), k);
        });
        for (std::size_t t = 0; held && t < table_.hashes.tables; ++t)
            held = table_.counts[row.numbers()[t]] > (sign > 0 ? 0 : 1);
        return held;
    }

    void add(RowSpace& space, int sign, double target) override {
        const SingleRow& row = SingleRow::in(space);
        for (std::size_t first = 0; first < table_.hashes.tables; first += LANES) {
            const std::size_t here = std::min(LANES, table_.hashes.tables - first);
            double* sums[LANES] = {};
            const double* v[LANES];
            for (std::size_t l = 0; l < LANES; ++l) v[l] = row.features(first + std::min(l, here - 1));
            for (std::size_t l = 0; l < here; ++l) {
                const std::uint64_t number = row.numbers()[first + l];
                sums[l] = table_.sums + number * shape_.sums();
                table_.counts[number] += sign;
                if (table_.stale) table_.stale[number] = 1;
            }
            contributions(
                shape_, products_, Reals{} + static_cast<double>(sign),
                [&](std::size_t j) { return Reals{} + row.local()[j]; },
                [&](std::size_t j) { return lanes_of([&](std::size_t l) { return v[l][j]; }); },
                [&](std::size_t) { return Reals{} + target; }, own_.data());
            add_lanes(own_.data(), shape_, sums);
        }
    }

    void drop(RowSpace& row) const override { SingleRow::in(row).~SingleRow(); }

  private:
    const UpdatedTable table_;
    const Search search_;
    const Shape shape_;
    const Products products_;
    Scratch<Reals> own_;
};

}  // namespace

std::unique_ptr<RowSums> row_sums(const UpdatedTable& table) {
    return std::make_unique<BucketRowSums>(table);
}

}  // namespace sparsact::SPARSACT_ISA

#else

#include "bind_row_update.hpp"

namespace sparsact {

SPARSACT_BINDINGS(module) {
    nb::class_<TableSums>(module, "_TableSums")
        .def(nb::init<Numbers, Matrix, Matrix, Numbers, Keys, bool, bool, SlotWords, int,
                      Array<std::int64_t, 1>, Records, Stale>());
    nb::class_<RowUpdater>(module, "_RowUpdater")
        .def(nb::init<const TableSums&, const TableSums*, nb::list, Array<const std::int64_t, 1>, std::size_t,
                      double, double, Numbers, Numbers, double, double, double, nb::object, nb::object,
                      Array<double, 1> >(),
             nb::arg(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
             nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg(),
             nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>())
        .def("__call__", &RowUpdater::operator());
}

}  // namespace sparsact

#endif
