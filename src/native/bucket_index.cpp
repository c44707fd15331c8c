#include "bucket_index.hpp"

namespace sparsact {

namespace {

constexpr std::size_t AHEAD = 16;  // keys: their slots come from memory in the meantime
constexpr std::uint64_t MOST = std::uint64_t{1} << 31;

using plain::Search;

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
