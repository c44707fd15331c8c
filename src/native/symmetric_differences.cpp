// All distinct symmetric differences of two subsets of a family. No vectors in it: compiled once.
#include <cstddef>
#include <cstdint>
#include <memory>

#include "family.hpp"

namespace sparsact {

struct MaskArray {
    std::unique_ptr<std::uint64_t[]> data;  // (size, words)
    std::size_t size;
};

// Distinct masks in numeric order, the last word the most significant; position (size, size) holds their
// places.
MaskArray symmetric_differences(Family family, std::int32_t* position);

}  // namespace sparsact

#ifdef SPARSACT_ISA_portable

#include <array>
#include <numeric>

#include "mask_set.hpp"

namespace sparsact {

namespace {

// Numbers every pair a > b in the lower triangle of position, by first appearance; the empty set is number 0.
template <std::size_t WORDS>
std::vector<std::uint64_t> number_pairs(Family family, std::int32_t* position) {
    constexpr std::size_t AHEAD = 32;  // pairs whose slots are fetched together, to hide the wait for memory
    const std::size_t words = WORDS ? WORDS : family.words;
    MaskSet<WORDS> seen(words);
    std::vector<std::uint64_t> pairs(AHEAD * words);
    std::array<std::uint64_t, AHEAD> hashes;
    seen.number(pairs.data(), MaskSet<WORDS>::hash(pairs.data(), words));
    for (std::size_t a = 0; a < family.size; ++a)
        for (std::size_t first = 0; first < a; first += AHEAD) {
            const std::size_t count = std::min(AHEAD, a - first);
            for (std::size_t k = 0; k < count; ++k) {
                std::uint64_t* pair = pairs.data() + k * words;
                for (std::size_t w = 0; w < words; ++w)
                    pair[w] = family.masks[a * words + w] ^ family.masks[(first + k) * words + w];
                hashes[k] = MaskSet<WORDS>::hash(pair, words);
                seen.prefetch(hashes[k]);
            }
            for (std::size_t k = 0; k < count; ++k)
                position[a * family.size + first + k] =
                    static_cast<std::int32_t>(seen.number(pairs.data() + k * words, hashes[k]));
        }
    return seen.release();
}

struct Item {
    std::uint64_t key;
    std::uint32_t number;
};

// Stable radix sort by key; digits that are the same everywhere cost nothing. `other` is as long as `items`.
void sort_by_key(std::vector<Item>& items, std::vector<Item>& other) {
    constexpr int BITS = 11, DIGITS = (64 + BITS - 1) / BITS;
    constexpr std::size_t RADIX = std::size_t{1} << BITS;
    std::vector<std::array<std::size_t, RADIX>> starts(DIGITS);
    const auto digit = [](std::uint64_t key, int d) { return key >> (d * BITS) & (RADIX - 1); };
    for (const Item& item : items)
        for (int d = 0; d < DIGITS; ++d) ++starts[d][digit(item.key, d)];
    for (int d = 0; d < DIGITS; ++d) {
        auto& start = starts[d];
        if (start[digit(items[0].key, d)] == items.size()) continue;
        std::exclusive_scan(start.begin(), start.end(), start.begin(), std::size_t{0});
        for (const Item& item : items) other[start[digit(item.key, d)]++] = item;
        items.swap(other);
    }
}

// Numbers of the masks in numeric order.
std::vector<std::uint32_t> numeric_order(const std::vector<std::uint64_t>& masks, std::size_t words) {
    const std::size_t size = masks.size() / words;
    std::vector<std::uint32_t> order(size);
    std::iota(order.begin(), order.end(), 0);
    std::vector<Item> items(size), other(size);
    for (std::size_t w = 0; w < words; ++w) {
        for (std::size_t i = 0; i < size; ++i) items[i] = {masks[order[i] * words + w], order[i]};
        sort_by_key(items, other);
        for (std::size_t i = 0; i < size; ++i) order[i] = items[i].number;
    }
    return order;
}

// Replaces the numbers in the lower triangle by places, and mirrors it; in tiles, so that both sides stay in
// cache.
void place(const std::vector<std::uint32_t>& places, std::size_t size, std::int32_t* position) {
    constexpr std::size_t TILE = 32;
    for (std::size_t top = 0; top < size; top += TILE)
        for (std::size_t left = 0; left <= top; left += TILE)
            for (std::size_t a = top; a < std::min(size, top + TILE); ++a)
                for (std::size_t b = left; b < std::min(a, left + TILE); ++b) {
                    std::int32_t& below = position[a * size + b];
                    below = static_cast<std::int32_t>(places[static_cast<std::uint32_t>(below)]);
                    position[b * size + a] = below;
                }
    for (std::size_t a = 0; a < size; ++a) position[a * size + a] = 0;  // the empty set comes first
}

}  // namespace

MaskArray symmetric_differences(Family family, std::int32_t* position) {
    if (family.size == 0) return {std::unique_ptr<std::uint64_t[]>(new std::uint64_t[1]), 0};
    const std::vector<std::uint64_t> masks = family.words == 1   ? number_pairs<1>(family, position)
                                             : family.words == 2 ? number_pairs<2>(family, position)
                                                                 : number_pairs<0>(family, position);
    const std::vector<std::uint32_t> order = numeric_order(masks, family.words);
    MaskArray unique{std::unique_ptr<std::uint64_t[]>(new std::uint64_t[masks.size()]), order.size()};
    std::vector<std::uint32_t> places(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
        places[order[i]] = static_cast<std::uint32_t>(i);
        std::copy_n(masks.data() + order[i] * family.words, family.words,
                    unique.data.get() + i * family.words);
    }
    place(places, family.size, position);
    return unique;
}

}  // namespace sparsact

#elif !defined(SPARSACT_ISA)

#include "bind.hpp"

namespace sparsact {

SPARSACT_BINDINGS(module) {
    using Words = Array<const std::uint64_t, 2>;
    using Positions = Array<std::int32_t, 2>;
    module.def(
        "symmetric_differences",
        [](Words masks, Positions position) {
            const Family family{masks.data(), masks.shape(0), masks.shape(1)};
            std::int32_t* places = position.data();
            MaskArray unique;
            {
                nb::gil_scoped_release unlocked;
                unique = symmetric_differences(family, places);
            }
            std::uint64_t* data = unique.data.release();
            nb::capsule owner(data,
                              [](void* words) noexcept { delete[] static_cast<std::uint64_t*>(words); });
            return nb::ndarray<nb::numpy, std::uint64_t, nb::ndim<2>>(data, {unique.size, family.words},
                                                                      owner);
        },
        nb::arg("masks").noconvert(), nb::arg("position").noconvert());
}

}  // namespace sparsact

#endif
