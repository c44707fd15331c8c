#include "fingerprint.hpp"

#include <algorithm>
#include <cstring>

#include "mixing.hpp"

namespace sparsact {

namespace {

constexpr std::size_t LINE = 64, LEAST_LINES = 16, MOST_STRIPES = 511;

// An odd number, so that in rows of 2^k lines every turn comes to other columns.
std::size_t stripes_of(std::size_t bytes) {
    return std::min(bytes / LINE / LEAST_LINES | 1, MOST_STRIPES);
}

std::uint64_t hash(const unsigned char* line, std::size_t bytes, std::size_t index) {
    std::uint64_t words[LINE / 8] = {};
    std::memcpy(words, line, std::min(bytes, LINE));
    std::uint64_t h = index;
    for (std::uint64_t word : words) h = SPARSACT_ISA::mixed(h, word);
    return SPARSACT_ISA::finished(h);
}

}  // namespace

Fingerprint::Fingerprint(const unsigned char* memory, std::size_t bytes)
    : bytes_(bytes), hashes_(stripes_of(bytes)) {
    hashes_ = every(memory);
}

bool Fingerprint::all(const unsigned char* memory) const { return every(memory) == hashes_; }

bool Fingerprint::next(const unsigned char* memory) {
    const std::size_t k = turn_.fetch_add(1, std::memory_order_relaxed) % hashes_.size();
    return stripe(memory, k) == hashes_[k];
}

std::uint64_t Fingerprint::stripe(const unsigned char* memory, std::size_t k) const {
    std::uint64_t sum = 0;
    for (std::size_t line = k; line * LINE < bytes_; line += hashes_.size())
        sum += hash(memory + line * LINE, bytes_ - line * LINE, line);
    return sum;
}

std::vector<std::uint64_t> Fingerprint::every(const unsigned char* memory) const {
    std::vector<std::uint64_t> sums(hashes_.size());
    std::size_t k = 0;
    for (std::size_t line = 0; line * LINE < bytes_; ++line) {
        sums[k] += hash(memory + line * LINE, bytes_ - line * LINE, line);
        if (++k == sums.size()) k = 0;
    }
    return sums;
}

}  // namespace sparsact
