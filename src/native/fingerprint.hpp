// Whether regions of memory still hold the bytes that they held, checked a stripe of cache lines at a time.
#pragma once

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
    bool next();       // lines k, k + stripes, ... of each region, with another k in every call

    std::size_t stripes() const;

  private:
    std::vector<std::pair<Region, std::vector<std::uint64_t>>> regions_;  // with a hash of each stripe
    std::atomic<std::size_t> turn_{0};
};

}  // namespace sparsact
