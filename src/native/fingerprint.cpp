// Whether regions of memory still hold the bytes that they held, checked a stripe of cache lines at a time.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace sparsact {

struct Region {
    const unsigned char* memory;
    std::size_t bytes;
};

class Fingerprint {
  public:
    explicit Fingerprint(std::vector<Region> regions);

    bool all() const;  // every line
    bool next();       // pieces k, k + stripes, ... of each region, with another k in every call

    std::size_t stripes() const;

  private:
    std::vector<std::pair<Region, std::vector<std::uint64_t>>> regions_;  // with a hash of each stripe
    std::atomic<std::size_t> turn_{0};
};

}  // namespace sparsact

#ifdef SPARSACT_ISA_portable

#include <algorithm>
#include <cstring>

#include "mixing.hpp"
#include "vector.hpp"

namespace sparsact {

namespace {

constexpr std::size_t LINE = 64, MOST_STRIPES = 511;
// Lines side by side that a stripe reads: each piece lies in a page of its own, whose place takes longer to
// find than the lines take to read.
constexpr std::size_t PIECE = 16, PIECES_AHEAD = 2;

// An odd number, so that in rows of 2^k pieces every turn comes to other columns; each has a whole piece.
std::size_t stripes_of(std::size_t bytes) {
    const std::size_t pieces = bytes / (LINE * PIECE);
    return pieces ? std::min((pieces - 1) | 1, MOST_STRIPES) : 1;
}

std::uint64_t hash_of_line(Region region, std::size_t line) {
    std::uint64_t words[LINE / 8] = {};
    std::memcpy(words, region.memory + line * LINE, std::min(region.bytes - line * LINE, LINE));
    std::uint64_t hash = line;
    for (std::uint64_t word : words) hash = portable::mixed(hash, word);
    return portable::finished(hash);
}

std::uint64_t hash_of_stripe(Region region, std::size_t k, std::size_t stripes) {
    std::uint64_t sum = 0;
    const std::size_t lines = (region.bytes + LINE - 1) / LINE;
    for (std::size_t first = k * PIECE; first < lines; first += stripes * PIECE)
        for (std::size_t line = first; line < std::min(first + PIECE, lines); ++line) {
            portable::prefetch(region.memory, (line + PIECES_AHEAD * stripes * PIECE) * LINE);
            sum += hash_of_line(region, line);
        }
    return sum;
}

std::vector<std::uint64_t> hashes_of(Region region) {
    std::vector<std::uint64_t> sums(stripes_of(region.bytes));
    for (std::size_t line = 0; line * LINE < region.bytes; ++line)
        sums[line / PIECE % sums.size()] += hash_of_line(region, line);
    return sums;
}

}  // namespace

Fingerprint::Fingerprint(std::vector<Region> regions) {
    for (Region region : regions) regions_.emplace_back(region, hashes_of(region));
}

bool Fingerprint::all() const {
    return std::all_of(regions_.begin(), regions_.end(),
                       [](const auto& known) { return hashes_of(known.first) == known.second; });
}

bool Fingerprint::next() {
    const std::size_t turn = turn_.fetch_add(1, std::memory_order_relaxed);
    return std::all_of(regions_.begin(), regions_.end(), [turn](const auto& known) {
        const std::vector<std::uint64_t>& hashes = known.second;
        const std::size_t k = turn % hashes.size();
        return hash_of_stripe(known.first, k, hashes.size()) == hashes[k];
    });
}

std::size_t Fingerprint::stripes() const {
    std::size_t most = 0;
    for (const auto& known : regions_) most = std::max(most, known.second.size());
    return most;
}

}  // namespace sparsact

#elif !defined(SPARSACT_ISA)

#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "bind.hpp"

namespace sparsact {

SPARSACT_BINDINGS(module) {
    using Places = std::vector<std::pair<std::uintptr_t, std::size_t>>;
    nb::class_<Fingerprint>(module, "Fingerprint")
        .def(
            "__init__",
            [](Fingerprint* self, const Places& places) {
                nb::gil_scoped_release unlocked;
                std::vector<Region> regions;
                for (auto [address, bytes] : places)
                    regions.push_back({reinterpret_cast<const unsigned char*>(address), bytes});
                new (self) Fingerprint(std::move(regions));
            },
            nb::arg("places"))
        .def_prop_ro("stripes", &Fingerprint::stripes)
        .def("next", &Fingerprint::next)
        .def("all", &Fingerprint::all, nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace sparsact

#endif
