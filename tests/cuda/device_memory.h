// Memory for kernels that run on the processor.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

namespace blindfuse::emulator {

constexpr uint32_t blocks_for(uint64_t threads, uint32_t each) {
  return static_cast<uint32_t>((threads + each - 1) / each);
}

struct Range {
  const void* begin;
  size_t bytes;
};

// All Memory that there is, by address: what watched kernels may touch.
inline std::vector<Range>& all_memory() {
  static std::vector<Range> ranges;
  return ranges;
}

// Memory as a device hands it out: aligned to 256 bytes, and not a byte more than was asked for.
template <typename T>
class Memory {
 public:
  explicit Memory(uint64_t count)
      : count_(count), data_(static_cast<T*>(::operator new(count * sizeof(T), kAlignment))) {
    std::memset(static_cast<void*>(data_.get()), 0xa5, count * sizeof(T));
    auto& all = all_memory();
    all.insert(std::ranges::upper_bound(all, static_cast<const void*>(data()), {}, &Range::begin),
               {data(), count * sizeof(T)});
  }
  // With a copy of these.
  template <typename Values>
  explicit Memory(const Values& values) requires requires {
    values.begin();
  } : Memory(static_cast<uint64_t>(values.size())) {
    std::ranges::copy(values, begin());
  }
  ~Memory() {
    if (data_ != nullptr)
      std::erase_if(all_memory(), [&](const Range& r) { return r.begin == data(); });
  }
  Memory(Memory&&) = default;
  T* data() const { return data_.get(); }
  T* begin() const { return data(); }
  T* end() const { return data() + count_; }
  uint64_t size() const { return count_; }
  T& operator[](uint64_t i) const { return data()[i]; }

 private:
  static constexpr std::align_val_t kAlignment{256};
  struct Free {
    void operator()(T* data) const { ::operator delete(data, kAlignment); }
  };
  uint64_t count_;
  std::unique_ptr<T, Free> data_;
};

}  // namespace blindfuse::emulator
