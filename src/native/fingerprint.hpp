// Whether memory still holds the bytes that it held, checked a stripe of cache lines at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sparsact {

class Fingerprint {
  public:
    Fingerprint(const unsigned char* memory, std::size_t bytes);

    bool all(const unsigned char* memory) const;  // every line
    bool next(const unsigned char* memory);       // lines k, k + stripes, ..., with another k in every call

    std::size_t stripes() const { return hashes_.size(); }

  private:
    std::uint64_t stripe(const unsigned char* memory, std::size_t k) const;
    std::vector<std::uint64_t> every(const unsigned char* memory) const;

    std::size_t bytes_;
    std::vector<std::uint64_t> hashes_;
    std::atomic<std::size_t> turn_{0};
};

}  // namespace sparsact
