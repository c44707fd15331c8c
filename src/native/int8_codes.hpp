// Scale and zero point of inputs that are quantised to 7 bits as they come, by torch's rules.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "int8_linear.hpp"
#include "vector.hpp"

namespace sparsact::SPARSACT_ISA {
namespace {

// The least and the largest number, and 0; NaN if one is not finite.
inline void find_range(const float* x, std::size_t count, float* least, float* largest) {
    constexpr std::size_t width = lanes<float>;
    Vector<float> low{}, high{}, wrong{};
    std::size_t i = 0;
    for (; i + width <= count; i += width) {
        const auto v = load<Vector<float>>(x + i);
        low = v < low ? v : low;
        high = v > high ? v : high;
        wrong += v - v;
    }
    float a[width], b[width], c[width];
    store(a, low), store(b, high), store(c, wrong);
    for (; i < count; ++i) a[0] = std::min(a[0], x[i]), b[0] = std::max(b[0], x[i]), c[0] += x[i] - x[i];
    *least = *largest = 0;
    for (std::size_t lane = 0; lane < width; ++lane) {
        *least = std::min(*least, a[lane]) + c[lane];
        *largest = std::max(*largest, b[lane]) + c[lane];
    }
}

// torch's choice for 7 bits (quant_utils::ChooseQuantizationParams with reduce_range).
inline Quantization quantization_of(float least, float largest) {
    constexpr float cutoff = 6.1e-5f;
    double scale = (static_cast<double>(largest) - least) / 127;
    if (static_cast<float>(scale) == 0 || std::isinf(1 / static_cast<float>(scale))) scale = 0.1;
    if (scale < cutoff) {
        const float amplified = cutoff / static_cast<float>(scale);
        const bool both = least != 0 && largest != 0;
        scale = cutoff;
        if (both)
            least *= amplified, largest *= amplified;
        else if (least == 0)
            largest = cutoff * 127;
        else
            least = -cutoff * 127;
    }
    const double low = least / scale, high = largest / scale;
    const double zero = -std::fabs(low) < 127 - std::fabs(high) ? -low : 127 - high;
    return {static_cast<float>(scale),
            static_cast<std::int32_t>(std::nearbyint(std::clamp(zero, 0.0, 127.0)))};
}

}  // namespace
}  // namespace sparsact::SPARSACT_ISA
