// An epoch of RMSProp on the squared loss of a linear layer over features that never change.
//
// Features are float32, all else double. Reading them is the cost: a batch comes from memory once, asked for
// while the batch before it is worked on, and its second pass finds it in the cache. The order of every sum
// is fixed, so every instruction set gives the same bits.
#include <cstddef>
#include <cstdint>

#include "isa.hpp"

namespace sparsact {

struct DenseFeatures {
    const float* values;  // (m, t)
    std::size_t t;
};

// The a active units of each row, each once, and their values.
template <class I>
struct CompactFeatures {
    const float* values;  // (m, a)
    const I* units;       // (m, a), less than t
    std::size_t a, t;
};

struct Layer {
    double *A, *velocity;  // (t,)
    double* intercept;     // and its velocity, or null for a layer without
};

struct Batches {
    const double* y;            // (m,)
    const std::int64_t* order;  // (m,)
    std::size_t m, size;
};

struct RMSProp {
    double learning_rate, rho, epsilon;
};

SPARSACT_DECLARE(
    // Changes the layer, a step a batch; returns the sum of the squared errors as they were met.
    template <class Features>
    double descend(Features features, Batches batches, RMSProp optimiser, Layer layer);)

}  // namespace sparsact

#ifdef SPARSACT_ISA

#include <algorithm>
#include <cmath>
#include <vector>

#include "vector.hpp"

namespace sparsact::SPARSACT_ISA {

namespace {

constexpr std::size_t UNITS = 16;  // taken together: a line of the cache

// v <- rho v + (1 - rho) g^2, A <- A - eta g / (sqrt v + epsilon)
SPARSACT_INLINE void step(double* A, double* velocity, const double* g, std::size_t n, RMSProp by) {
    for (std::size_t j = 0; j < n; ++j) {
        velocity[j] = by.rho * velocity[j] + (1 - by.rho) * (g[j] * g[j]);
        A[j] -= by.learning_rate * g[j] / (std::sqrt(velocity[j]) + by.epsilon);
    }
}

SPARSACT_INLINE double in_halves(double* partial) {
    for (std::size_t half = UNITS / 2; half; half /= 2)
        for (std::size_t p = 0; p < half; ++p) partial[p] += partial[p + half];
    return partial[0];
}

SPARSACT_INLINE Vector<double> load_doubles(const float* from) {
#ifdef SPARSACT_VECTORS
    return __builtin_convertvector(load<Vector<float, widest_bytes / 2>>(from), Vector<double>);
#else
    return *from;
#endif
}

// Rows with a value for every unit: gradient and step are one pass over the units.
class Dense {
  public:
    explicit Dense(DenseFeatures features) : of_(features) {}

    SPARSACT_INLINE double dot(std::size_t row, std::size_t next, const double* A) const {
        constexpr std::size_t width = lanes<double>, vectors = UNITS / width;
        const float *x = of_.values + row * of_.t, *ahead = of_.values + next * of_.t;
        Vector<double> sums[vectors] = {};
        std::size_t j = 0;
        for (; j + UNITS <= of_.t; j += UNITS) {
            prefetch(ahead, j);
            for (std::size_t v = 0; v < vectors; ++v)
                sums[v] += load_doubles(x + j + v * width) * load<Vector<double>>(A + j + v * width);
        }
        double partial[UNITS];
        for (std::size_t v = 0; v < vectors; ++v) store(partial + v * width, sums[v]);
        for (std::size_t p = 0; j < of_.t; ++j, ++p) partial[p] += double(x[j]) * A[j];
        return in_halves(partial);
    }

    void descend(const std::int64_t* rows, const double* slopes, std::size_t size, RMSProp by, Layer layer) {
        constexpr std::size_t width = lanes<double>, vectors = UNITS / width;
        const std::size_t t = of_.t;
        double g[UNITS];
        std::size_t j = 0;
        for (; j + UNITS <= t; j += UNITS) {
            Vector<double> sums[vectors] = {};
            for (std::size_t i = 0; i < size; ++i) {
                const float* x = of_.values + static_cast<std::size_t>(rows[i]) * t + j;
                for (std::size_t v = 0; v < vectors; ++v) sums[v] += slopes[i] * load_doubles(x + v * width);
            }
            for (std::size_t v = 0; v < vectors; ++v) store(g + v * width, sums[v]);
            step(layer.A + j, layer.velocity + j, g, UNITS, by);
        }
        std::fill_n(g, UNITS, 0.0);
        for (std::size_t i = 0; i < size; ++i)
            for (std::size_t p = 0; j + p < t; ++p)
                g[p] += slopes[i] * double(of_.values[static_cast<std::size_t>(rows[i]) * t + j + p]);
        step(layer.A + j, layer.velocity + j, g, t - j, by);
    }

  private:
    DenseFeatures of_;
};

// Rows that name their active units: the gradient is gathered in an array first.
template <class I>
class Compact {
  public:
    explicit Compact(CompactFeatures<I> features) : of_(features), gradient_(features.t) {}

    SPARSACT_INLINE double dot(std::size_t row, std::size_t next, const double* A) const {
        const float *x = of_.values + row * of_.a, *ahead = of_.values + next * of_.a;
        const I *units = of_.units + row * of_.a, *units_ahead = of_.units + next * of_.a;
        double partial[UNITS] = {};
        std::size_t j = 0;
        for (; j + UNITS <= of_.a; j += UNITS) {
            prefetch(ahead, j);
            prefetch(units_ahead, j);
            for (std::size_t p = 0; p < UNITS; ++p) partial[p] += double(x[j + p]) * A[units[j + p]];
        }
        for (std::size_t p = 0; j < of_.a; ++j, ++p) partial[p] += double(x[j]) * A[units[j]];
        return in_halves(partial);
    }

    void descend(const std::int64_t* rows, const double* slopes, std::size_t size, RMSProp by, Layer layer) {
        double* g = gradient_.data();
        std::fill_n(g, of_.t, 0.0);
        for (std::size_t i = 0; i < size; ++i) {
            const std::size_t row = static_cast<std::size_t>(rows[i]) * of_.a;
            const float* x = of_.values + row;
            const I* units = of_.units + row;
            for (std::size_t j = 0; j < of_.a; ++j) g[units[j]] += slopes[i] * double(x[j]);
        }
        step(layer.A, layer.velocity, g, of_.t, by);
    }

  private:
    CompactFeatures<I> of_;
    std::vector<double> gradient_;
};

Dense rows_of(DenseFeatures features) { return Dense(features); }

template <class I>
Compact<I> rows_of(CompactFeatures<I> features) {
    return Compact<I>(features);
}

}  // namespace

template <class Features>
double descend(Features features, Batches batches, RMSProp optimiser, Layer layer) {
    auto rows = rows_of(features);
    std::vector<double> slopes(std::min(batches.size, batches.m));
    double loss = 0;
    for (std::size_t start = 0; start < batches.m; start += batches.size) {
        const std::size_t size = std::min(batches.size, batches.m - start);
        const std::int64_t* batch = batches.order + start;
        double total = 0;
        for (std::size_t i = 0; i < size; ++i) {
            const std::size_t row = static_cast<std::size_t>(batch[i]);
            const std::size_t next = std::min(start + i + batches.size, batches.m - 1);
            const double value = rows.dot(row, static_cast<std::size_t>(batches.order[next]), layer.A) +
                                 (layer.intercept ? *layer.intercept : 0);
            const double error = value - batches.y[row];
            loss += error * error;
            slopes[i] = 2 * error / double(size);
            total += slopes[i];
        }
        rows.descend(batch, slopes.data(), size, optimiser, layer);
        if (layer.intercept) step(layer.intercept, layer.intercept + 1, &total, 1, optimiser);
    }
    return loss;
}

template double descend(DenseFeatures, Batches, RMSProp, Layer);
template double descend(CompactFeatures<std::uint16_t>, Batches, RMSProp, Layer);
template double descend(CompactFeatures<std::uint32_t>, Batches, RMSProp, Layer);

}  // namespace sparsact::SPARSACT_ISA

#else

#include "bind.hpp"

namespace sparsact {

namespace {

template <class T>
using Table = Array<const T, 2>;
template <class T>
using Column = Array<T, 1>;
using Reals = Column<double>;

struct Run {
    Batches batches;
    Layer layer;
    RMSProp optimiser;

    Run(Column<const double> y, Column<const std::int64_t> order, Reals A, Reals velocity, Reals intercept,
        bool fit_intercept, std::size_t batch_size, double learning_rate, double rho, double epsilon)
        : batches{y.data(), order.data(), order.shape(0), batch_size},
          layer{A.data(), velocity.data(), fit_intercept ? intercept.data() : nullptr},
          optimiser{learning_rate, rho, epsilon} {}
};

template <class I>
void bind_compact(nb::module_& module) {
    module.def(
        "descend_compact",
        [](Table<float> values, Table<I> units, Column<const double> y, Column<const std::int64_t> order,
           Reals A, Reals velocity, Reals intercept, bool fit_intercept, std::size_t batch_size,
           double learning_rate, double rho, double epsilon) {
            const Run run(y, order, A, velocity, intercept, fit_intercept, batch_size, learning_rate, rho,
                          epsilon);
            const CompactFeatures<I> features{values.data(), units.data(), values.shape(1), A.shape(0)};
            nb::gil_scoped_release unlocked;
            return SPARSACT_DISPATCH(descend, features, run.batches, run.optimiser, run.layer);
        },
        nb::arg("values").noconvert(), nb::arg("units").noconvert(), nb::arg("y").noconvert(),
        nb::arg("order").noconvert(), nb::arg("A").noconvert(), nb::arg("velocity").noconvert(),
        nb::arg("intercept").noconvert(), nb::arg("fit_intercept"), nb::arg("batch_size"),
        nb::arg("learning_rate"), nb::arg("rho"), nb::arg("epsilon"));
}

}  // namespace

SPARSACT_BINDINGS(module) {
    module.def(
        "descend_dense",
        [](Table<float> values, Column<const double> y, Column<const std::int64_t> order, Reals A,
           Reals velocity, Reals intercept, bool fit_intercept, std::size_t batch_size, double learning_rate,
           double rho, double epsilon) {
            const Run run(y, order, A, velocity, intercept, fit_intercept, batch_size, learning_rate, rho,
                          epsilon);
            const DenseFeatures features{values.data(), values.shape(1)};
            nb::gil_scoped_release unlocked;
            return SPARSACT_DISPATCH(descend, features, run.batches, run.optimiser, run.layer);
        },
        nb::arg("values").noconvert(), nb::arg("y").noconvert(), nb::arg("order").noconvert(),
        nb::arg("A").noconvert(), nb::arg("velocity").noconvert(), nb::arg("intercept").noconvert(),
        nb::arg("fit_intercept"), nb::arg("batch_size"), nb::arg("learning_rate"), nb::arg("rho"),
        nb::arg("epsilon"));
    bind_compact<std::uint16_t>(module);
    bind_compact<std::uint32_t>(module);
}

}  // namespace sparsact

#endif
