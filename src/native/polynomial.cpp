// Values of polynomials of multilinear monomials at many points.
//
// A monomial is multiplied from its highest coordinate down, and monomials are added in the order of the
// family: every instruction set and number of threads gives the same bits.
#include <cstddef>
#include <cstdint>

#include "family.hpp"
#include "isa.hpp"

namespace sparsact {

// Points as rows of real numbers (m, n), or as packed columns (n, words of m) of signs.
struct RealPoints {
    const double* rows;
    std::size_t m, n;
};

struct PackedPoints {
    const std::uint64_t* columns;
    std::size_t m, n;
};

struct Polynomials {
    Family family;
    const double* coefficients;  // (family.size, count)
    std::size_t count;
};

SPARSACT_DECLARE(
    // values (m, polynomials.count); n_threads <= 0: as many as OpenMP would take.
    void evaluate(RealPoints points, Polynomials polynomials, double* values, int n_threads);
    void evaluate(PackedPoints points, Polynomials polynomials, double* values, int n_threads);)

}  // namespace sparsact

#ifdef SPARSACT_ISA

#include <algorithm>
#include <cstring>

#include "prefix_walk.hpp"
#include "threads.hpp"

namespace sparsact::SPARSACT_ISA {

namespace {

constexpr std::size_t ROWS = 64;  // points at a time: their columns and the levels of a walk stay in L1 or L2
constexpr int TERMS = 4;

// The columns of ROWS points from `first` on; rows past the last point hold anything finite.
void load(const RealPoints& points, std::size_t first, double* columns) {
    const std::size_t rows = std::min(ROWS, points.m - first);
    if (rows < ROWS) std::fill_n(columns, points.n * ROWS, 1.0);
    for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t i = 0; i < points.n; ++i)
            columns[i * ROWS + r] = points.rows[(first + r) * points.n + i];
}

void load(const PackedPoints& points, std::size_t first, double* columns) {
    const std::size_t words = (points.m + ROWS - 1) / ROWS;
    constexpr std::uint64_t one = 0x3FF0000000000000;  // 1.0; its top bit is the sign
    for (std::size_t i = 0; i < points.n; ++i) {
        const std::uint64_t word = points.columns[i * words + first / ROWS];
        std::uint64_t signs[ROWS];
        for (std::size_t r = 0; r < ROWS; ++r) signs[r] = one | word >> r << 63;
        std::memcpy(columns + i * ROWS, signs, sizeof signs);
    }
}

// Products of reals round in the order of the definition; products of signs are exact in any order.
Order walk_order(const RealPoints&, const PrefixWalk&, const Family&) { return Order::descending; }
Order walk_order(const PackedPoints&, const PrefixWalk& walk, const Family& family) {
    return walk.better_order(0, family.size);
}

void multiply(const double* __restrict parent, const double* __restrict column, double* __restrict product) {
    for (std::size_t r = 0; r < ROWS; ++r) product[r] = parent[r] * column[r];
}

// The monomials parent * column of a few masks in a row, added together: each sum is loaded and stored once.
struct Terms {
    const double* parents[TERMS];
    const double* columns[TERMS];
    int size = 0;
};

// sums[r] += coefficient * monomial[r], for each of K terms in turn.
template <int K>
void add_terms(const Terms& terms, const double* coefficients, double* __restrict sums) {
    const Terms local = terms;
    double coefficient[K];
    std::copy_n(coefficients, K, coefficient);
    for (std::size_t r = 0; r < ROWS; ++r) {
        double sum = sums[r];
        for (int k = 0; k < K; ++k) sum += coefficient[k] * (local.parents[k][r] * local.columns[k][r]);
        sums[r] = sum;
    }
}

// The same for several polynomials: coefficients (K, count), sums (count, ROWS).
template <int K>
void add_terms(const Terms& terms, const double* coefficients, std::size_t count, double* sums) {
    alignas(64) double monomials[K][ROWS];
    for (int k = 0; k < K; ++k) multiply(terms.parents[k], terms.columns[k], monomials[k]);
    for (std::size_t t = 0; t < count; ++t) {
        double* __restrict sum = sums + t * ROWS;
        double coefficient[K];
        for (int k = 0; k < K; ++k) coefficient[k] = coefficients[static_cast<std::size_t>(k) * count + t];
        for (std::size_t r = 0; r < ROWS; ++r) {
            double total = sum[r];
            for (int k = 0; k < K; ++k) total += coefficient[k] * monomials[k][r];
            sum[r] = total;
        }
    }
}

// One thread's memory for ROWS points.
class Block {
  public:
    Block(std::size_t n, std::size_t count)
        : count_(count),
          columns_(n * ROWS),
          ones_(ROWS),
          stored_((n + 1) * TERMS * ROWS),
          sums_(count * ROWS),
          turns_(n + 1),
          levels_(n + 1) {
        std::fill_n(ones_.data(), ROWS, 1.0);
        std::fill_n(turns_.data(), n + 1, 0);
        levels_[0] = ones_.data();
    }

    double* columns() { return columns_.data(); }

    void start(const double* values, std::size_t rows) {
        std::fill_n(sums_.data(), count_ * ROWS, 0.0);
        for (std::size_t r = 0; r < rows; ++r)
            for (std::size_t t = 0; t < count_; ++t) sums_[t * ROWS + r] = values[r * count_ + t];
    }

    void finish(double* values, std::size_t rows) const {
        for (std::size_t r = 0; r < rows; ++r)
            for (std::size_t t = 0; t < count_; ++t) values[r * count_ + t] = sums_[t * ROWS + r];
    }

    // Adds the monomials of a planned walk; coefficients (masks of the walk, count).
    void add(const PrefixWalk& walk, const double* coefficients) {
        for (const Step& step : walk) {
            const double* column = step.coordinate == Step::NO_COORDINATE
                                       ? ones_.data()
                                       : columns_.data() + step.coordinate * ROWS;
            const double* parent =
                levels_[step.coordinate == Step::NO_COORDINATE ? step.depth : step.depth - 1];
            if (step.keep && step.coordinate != Step::NO_COORDINATE) store(step.depth, parent, column);
            if (step.mask == Step::NO_MASK) continue;
            terms_.parents[terms_.size] = parent;
            terms_.columns[terms_.size++] = column;
            if (terms_.size == TERMS) coefficients = flush(coefficients);
        }
        flush(coefficients);
    }

  private:
    // A mask changes a level at most once, so with TERMS places in turn the waiting terms keep their parents.
    void store(std::uint32_t depth, const double* parent, const double* column) {
        if (depth == 1) {
            levels_[1] = column;
            return;
        }
        turns_[depth] = (turns_[depth] + 1) % TERMS;
        double* level = stored_.data() + (depth * TERMS + turns_[depth]) * ROWS;
        multiply(parent, column, level);
        levels_[depth] = level;
    }

    // Adds the waiting terms; returns the coefficients of the next mask.
    const double* flush(const double* coefficients) {
        if (terms_.size == TERMS)
            add<TERMS>(coefficients);
        else if (terms_.size == 3)
            add<3>(coefficients);
        else if (terms_.size == 2)
            add<2>(coefficients);
        else if (terms_.size == 1)
            add<1>(coefficients);
        coefficients += static_cast<std::size_t>(terms_.size) * count_;
        terms_.size = 0;
        return coefficients;
    }

    template <int K>
    void add(const double* coefficients) {
        if (count_ == 1)
            add_terms<K>(terms_, coefficients, sums_.data());
        else
            add_terms<K>(terms_, coefficients, count_, sums_.data());
    }

    std::size_t count_;
    Scratch<double> columns_, ones_, stored_, sums_;
    Scratch<std::size_t> turns_;
    Scratch<const double*> levels_;
    Terms terms_;
};

template <class Points>
void evaluate_points(const Points& points, const Polynomials& polynomials, double* values, int n_threads) {
    const Family& family = polynomials.family;
    const std::size_t count = polynomials.count;
    const auto blocks = static_cast<std::int64_t>((points.m + ROWS - 1) / ROWS);
    std::fill_n(values, points.m * count, 0.0);
    PrefixWalk walk(family.masks, family.words);
    const Order order = walk_order(points, walk, family);
    if (blocks == 0) return;
    [[maybe_unused]] const auto useful =
        static_cast<int>(std::min<std::int64_t>(available_threads(n_threads), blocks));
    for (std::size_t first = 0, last; first < family.size; first = last) {
        last = walk.plan(first, family.size, order);
        const double* coefficients = polynomials.coefficients + first * count;
#ifdef _OPENMP
#pragma omp parallel num_threads(useful)
#endif
        {
            Block block(points.n, count);
#ifdef _OPENMP
#pragma omp for schedule(static)
#endif
            for (std::int64_t b = 0; b < blocks; ++b) {
                const std::size_t row = static_cast<std::size_t>(b) * ROWS,
                                  rows = std::min(ROWS, points.m - row);
                load(points, row, block.columns());
                block.start(values + row * count, rows);
                block.add(walk, coefficients);
                block.finish(values + row * count, rows);
            }
        }
    }
}

}  // namespace

void evaluate(RealPoints points, Polynomials polynomials, double* values, int n_threads) {
    evaluate_points(points, polynomials, values, n_threads);
}

void evaluate(PackedPoints points, Polynomials polynomials, double* values, int n_threads) {
    evaluate_points(points, polynomials, values, n_threads);
}

}  // namespace sparsact::SPARSACT_ISA

#else

#include "bind.hpp"

namespace sparsact {

namespace {

template <class T>
using Table = Array<T, 2>;

Polynomials polynomials_of(const Table<const std::uint64_t>& masks, const Table<const double>& coefficients) {
    return {{masks.data(), masks.shape(0), masks.shape(1)}, coefficients.data(), coefficients.shape(1)};
}

}  // namespace

SPARSACT_BINDINGS(module) {
    using Reals = Table<const double>;
    using Words = Table<const std::uint64_t>;
    module.def(
        "evaluate",
        [](Reals X, Words masks, Reals coefficients, Table<double> values, int n_threads) {
            const RealPoints points{X.data(), X.shape(0), X.shape(1)};
            const Polynomials polynomials = polynomials_of(masks, coefficients);
            double* out = values.data();
            nb::gil_scoped_release unlocked;
            SPARSACT_DISPATCH(evaluate, points, polynomials, out, n_threads);
        },
        nb::arg("X").noconvert(), nb::arg("masks").noconvert(), nb::arg("coefficients").noconvert(),
        nb::arg("values").noconvert(), nb::arg("n_threads"));
    module.def(
        "evaluate_packed",
        [](Words columns, Words masks, Reals coefficients, Table<double> values, int n_threads) {
            const PackedPoints points{columns.data(), values.shape(0), columns.shape(0)};
            const Polynomials polynomials = polynomials_of(masks, coefficients);
            double* out = values.data();
            nb::gil_scoped_release unlocked;
            SPARSACT_DISPATCH(evaluate, points, polynomials, out, n_threads);
        },
        nb::arg("columns").noconvert(), nb::arg("masks").noconvert(), nb::arg("coefficients").noconvert(),
        nb::arg("values").noconvert(), nb::arg("n_threads"));
}

}  // namespace sparsact

#endif
