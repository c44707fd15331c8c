// A block of memory on a cache line, not initialised. Internal linkage: each instruction set keeps its own
// copy.
#pragma once

#include <cstddef>
#include <new>

namespace sparsact::SPARSACT_ISA {
namespace {

template <class T>
class Scratch {
  public:
    explicit Scratch(std::size_t count)
        : data_(static_cast<T*>(::operator new(count * sizeof(T), std::align_val_t{64}))) {}
    ~Scratch() { ::operator delete(data_, std::align_val_t{64}); }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;

    T* data() { return data_; }
    const T* data() const { return data_; }
    T& operator[](std::size_t i) { return data_[i]; }
    const T& operator[](std::size_t i) const { return data_[i]; }

  private:
    T* data_;
};

}  // namespace
}  // namespace sparsact::SPARSACT_ISA
