#include "host/cpu/cpu_engine_maker.h"

#include <algorithm>

#include "host/cpu/cpu_engine.h"
#include "host/cpu/pipelines/pack_maker.h"
#include "host/cpu/scan/kernel_choice.h"

namespace blindfuse {
namespace {

class CpuEngineMaker final : public EngineMaker {
 public:
  CpuEngineMaker(const MultiplyKernel& kernel, unsigned thread_count)
      : kernel_(kernel), thread_count_(thread_count) {}

  std::unique_ptr<Engine> make_engine(uint64_t row_count, uint64_t column_count) const override {
    return make_cpu_engine(kernel_, std::make_shared<Matrix>(row_count, column_count),
                           thread_count_);
  }

  // Each of the caller's threads makes one.
  size_t packs_at_once(uint64_t, unsigned thread_count) const override {
    return std::clamp<size_t>(thread_count, 1, kPacksAtOnceMax);
  }

  std::unique_ptr<PackMaker> make_pack_maker(std::span<const uint32_t> blocks,
                                             std::span<const uint32_t> key_masks,
                                             uint64_t row_count,
                                             uint64_t column_count) const override {
    return make_cpu_pack_maker(blocks, key_masks, row_count, column_count);
  }

 private:
  const MultiplyKernel& kernel_;
  const unsigned thread_count_;
};

}  // namespace

std::vector<std::string_view> cpu_kernel_names() {
  std::vector<std::string_view> names;
  for (const MultiplyKernel* kernel : usable_kernels()) names.push_back(kernel->name);
  return names;
}

std::unique_ptr<EngineMaker> make_cpu_engine_maker(std::string_view kernel, unsigned thread_count) {
  return std::make_unique<CpuEngineMaker>(choose_kernel(kernel), thread_count);
}

}  // namespace blindfuse
