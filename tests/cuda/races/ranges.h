// The memory that a kernel is given.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "tests/cuda/device_memory.h"
#include "tests/cuda/races/shadow.h"

namespace blindfuse::races {

class Ranges {
 public:
  template <class... T>
  explicit Ranges(const emulator::Memory<T>&... memory) {
    (add(memory), ...);
  }
  // Those of what has for_each_memory(), too.
  template <class Owner>
  Ranges& with(const Owner& owner) {
    owner.for_each_memory([this](const auto& memory) { add(memory); });
    return *this;
  }
  operator std::span<const Range>() const { return all_; }

 private:
  template <class T>
  void add(const emulator::Memory<T>& memory) {
    all_.push_back({memory.data(), static_cast<size_t>(memory.end() - memory.begin()) * sizeof(T)});
  }

  std::vector<Range> all_;
};

}  // namespace blindfuse::races
