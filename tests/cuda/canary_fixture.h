// A small matrix in the memory of an emulated GPU, with its canary, and clients' queries whose
// answers are worked out by the definition.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cuda/cuda_engine.h"
#include "host/engines/canary_response.h"
#include "src/arithmetic/packing_table.h"
#include "src/arithmetic/ring/prime_field.h"
#include "src/base/errors.h"
#include "tests/client/seeded_random.h"
#include "tests/cuda/plain_product.h"
#include "tests/support.h"

namespace blindfuse::canary_testing {

using plain_product::sequence;
using support::SeededRandom;

inline constexpr uint64_t kRows = 320, kColumns = 41;
inline constexpr uint32_t kQueryBits = 26, kResponseBits = 13;
inline constexpr size_t kSlots = 80, kBatchMax = 40;
inline constexpr auto kNever = std::chrono::hours(1);

class CanaryFixture : public ::testing::Test {
 protected:
  CanaryFixture() : matrix_(random_.octets(kRows * kColumns)) {
    layout_.lwe = find_lwe_params("lwe-1288");
    layout_.row_count = kRows;
    layout_.query_bits = kQueryBits;
    layout_.response_bits = kResponseBits;
    canary_.words = query_words();
    canary_.products = product(canary_.words);
    complete_canary(canary_, layout_, {}, 1, seeded_random(142));
  }

  std::vector<uint32_t> query_words() {
    return plain_product::query_words(random_, kRows, kQueryBits);
  }
  std::vector<uint32_t> product(const std::vector<uint32_t>& words) const {
    return plain_product::product(matrix_, words);
  }

  SharedPackingTable random_table() {
    const std::shared_ptr<uint32_t[]> table(new uint32_t[kTableWords]);
    for (size_t i = 0; i < kTableWords; ++i) {
      table[i] = static_cast<uint32_t>(random_.below(ring::kPackingModulus));
    }
    return table;
  }

  std::unique_ptr<Engine> engine(std::string_view kernel = "") {
    auto engine = make_cuda_engine(kernel, 0, record_, kRows, kColumns);
    engine->set_columns(0, matrix_);
    engine->seal();
    return engine;
  }
  std::unique_ptr<AnswerPipeline> pipeline(Engine& engine, std::chrono::milliseconds interval) {
    auto made = engine.make_answer_pipeline({kQueryBits, kResponseBits}, kSlots, kBatchMax);
    made->set_canary(canary_, interval);
    return made;
  }

  // Asks for a batch of random queries: whether the responses are right, or "" and the error.
  std::string answer(AnswerPipeline& pipeline, size_t count) {
    std::vector<uint8_t> expected;
    for (size_t i = 0; i < count; ++i) {
      const auto words = query_words();
      pipeline.put(i, sequence(words, kQueryBits));
      const auto response = sequence(product(words), kResponseBits);
      expected.insert(expected.end(), response.begin(), response.end());
    }
    try {
      pipeline.begin(0, count);
      return std::ranges::equal(pipeline.finish(), expected) ? "right" : "wrong";
    } catch (const DeviceLostError& error) {
      return std::string("lost: ") + error.what();
    } catch (const ResourceError& error) {
      return std::string("failed: ") + error.what();
    }
  }

  uint64_t checks(std::string_view kernel, CheckStage stage) const {
    for (const auto& count : record_->counts()) {
      if (count.kernel == kernel && count.stage == stage) return count.passed;
    }
    return 0;
  }

  SeededRandom random_{140};
  std::vector<uint8_t> matrix_;
  Layout layout_;
  Canary canary_;
  std::shared_ptr<KernelRecord> record_ = std::make_shared<KernelRecord>();
};

}  // namespace blindfuse::canary_testing
