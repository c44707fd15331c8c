// Numbers of buckets by key: see slots.hpp. Plain code, compiled once.
//
// Keys get the numbers that the reference gives them; where in the slots a key stands may differ, for the
// reference puts many in at a time.
#include <cstddef>
#include <cstdint>

#include "slots.hpp"

namespace sparsact {

struct OpenSlots {
    std::uint64_t* words;  // (n, 2)
    std::size_t n;         // a power of two; more than there are buckets
};

// ids (m,): number of each key's bucket, or -1.
void find(Slots slots, const std::uint64_t* keys, std::size_t m, std::int32_t* ids);

// Gives new keys the next numbers, in order of appearance; returns how many buckets there are now.
std::size_t insert(OpenSlots slots, std::uint64_t* bucket_keys, std::size_t n_buckets,
                   const std::uint64_t* keys, std::size_t m, std::int32_t* ids);

// Puts buckets start, ..., stop - 1 into the slots, which hold none of them yet.
void fill(OpenSlots slots, const std::uint64_t* bucket_keys, std::size_t start, std::size_t stop);

}  // namespace sparsact

#ifdef SPARSACT_ISA_portable

namespace sparsact {

namespace {

constexpr std::size_t AHEAD = 16;  // keys: their slots come from memory in the meantime
constexpr std::uint64_t MOST = std::uint64_t{1} << 31;

using portable::Search;

// Calls f(i, key of i) for all keys, whose slots are on their way.
template <class F>
void for_each_key(const Search& search, const std::uint64_t* keys, std::size_t start, std::size_t stop, F f) {
    for (std::size_t i = start; i < stop; ++i) {
        if (i + AHEAD < stop) search.prefetch_home(keys[i + AHEAD]);
        f(i, keys[i]);
    }
}

std::int32_t as_id(std::uint64_t number) {
    return number < MOST ? static_cast<std::int32_t>(number) : std::int32_t{-1};
}

}  // namespace

void find(Slots slots, const std::uint64_t* keys, std::size_t m, std::int32_t* ids) {
    const Search search(slots);
    for_each_key(search, keys, 0, m,
                 [&](std::size_t i, std::uint64_t key) { ids[i] = as_id(search.number(key)); });
}

std::size_t insert(OpenSlots slots, std::uint64_t* bucket_keys, std::size_t n_buckets,
                   const std::uint64_t* keys, std::size_t m, std::int32_t* ids) {
    const Search search({slots.words, slots.n});
    for_each_key(search, keys, 0, m, [&](std::size_t i, std::uint64_t key) {
        std::size_t at = search.home(key);
        while (slots.words[2 * at + 1] != NOWHERE && slots.words[2 * at] != key) at = search.after(at);
        std::uint64_t* slot = slots.words + 2 * at;
        if (slot[1] == NOWHERE) {
            slot[0] = bucket_keys[n_buckets] = key;
            slot[1] = n_buckets++;
        }
        ids[i] = as_id(slot[1]);
    });
    return n_buckets;
}

void fill(OpenSlots slots, const std::uint64_t* bucket_keys, std::size_t start, std::size_t stop) {
    const Search search({slots.words, slots.n});
    for_each_key(search, bucket_keys, start, stop, [&](std::size_t number, std::uint64_t key) {
        std::size_t at = search.home(key);
        while (slots.words[2 * at + 1] != NOWHERE) at = search.after(at);
        slots.words[2 * at] = key;
        slots.words[2 * at + 1] = number;
    });
}

}  // namespace sparsact

#elif !defined(SPARSACT_ISA)

#include "bind.hpp"
#include "bind_buckets.hpp"

namespace sparsact {

SPARSACT_BINDINGS(module) {
    using OwnSlots = Array<std::uint64_t, 2>;
    using OwnKeys = Array<std::uint64_t, 1>;
    using Ids = Array<std::int32_t, 1>;
    module.def(
        "find",
        [](Array<const std::uint64_t, 2> slots, Keys keys, Ids ids) {
            const Slots open{slots.data(), slots.shape(0)};
            const std::uint64_t* wanted = keys.data();
            const std::size_t m = keys.shape(0);
            std::int32_t* out = ids.data();
            nb::gil_scoped_release unlocked;
            find(open, wanted, m, out);
        },
        nb::arg("slots").noconvert(), nb::arg("keys").noconvert(), nb::arg("ids").noconvert());
    module.def(
        "insert",
        [](OwnSlots slots, OwnKeys bucket_keys, std::size_t n_buckets, Keys keys, Ids ids) {
            const OpenSlots open{slots.data(), slots.shape(0)};
            std::uint64_t* known = bucket_keys.data();
            const std::uint64_t* wanted = keys.data();
            const std::size_t m = keys.shape(0);
            std::int32_t* out = ids.data();
            nb::gil_scoped_release unlocked;
            return insert(open, known, n_buckets, wanted, m, out);
        },
        nb::arg("slots").noconvert(), nb::arg("bucket_keys").noconvert(), nb::arg("n_buckets"),
        nb::arg("keys").noconvert(), nb::arg("ids").noconvert());
    module.def(
        "fill",
        [](OwnSlots slots, Keys bucket_keys, std::size_t start, std::size_t stop) {
            const OpenSlots open{slots.data(), slots.shape(0)};
            const std::uint64_t* known = bucket_keys.data();
            nb::gil_scoped_release unlocked;
            fill(open, known, start, stop);
        },
        nb::arg("slots").noconvert(), nb::arg("bucket_keys").noconvert(), nb::arg("start"), nb::arg("stop"));
}

}  // namespace sparsact

#endif
