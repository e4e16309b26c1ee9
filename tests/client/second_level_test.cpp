// The second level of packed responses from a client's query to its record, at full size: the
// client's own code, and the pipeline of the processor after a first level that is made up.
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "client/decoder.h"
#include "client/ring_query.h"
#include "host/cpu/pipelines/second_level_pipeline.h"
#include "host/publish/shard_plan.h"
#include "src/arithmetic/bit_sequence.h"
#include "src/arithmetic/second_level_spec.h"
#include "tests/client/seeded_random.h"

namespace blindfuse {
namespace {

struct Shape {
  uint32_t shard_count;
  uint32_t record_bytes;
  bool has_short_key;
};

// Answers every query with the same response.
class FirstLevel final : public AnswerPipeline {
 public:
  FirstLevel(std::vector<uint8_t> response, uint64_t query_bytes)
      : response_(std::move(response)), query_bytes_(query_bytes) {}

  size_t depth() const override { return 2; }
  void put(size_t, std::span<const uint8_t> query) override {
    EXPECT_EQ(query.size(), query_bytes_);
  }
  void move(size_t, size_t) override {}
  void begin(size_t, size_t count) override { counts_.push_back(count); }
  std::span<const uint8_t> finish() override {
    responses_.clear();
    for (size_t i = 0; i < counts_.front(); ++i) {
      responses_.insert(responses_.end(), response_.begin(), response_.end());
    }
    counts_.erase(counts_.begin());
    return responses_;
  }

 private:
  const std::vector<uint8_t> response_;
  const uint64_t query_bytes_;
  std::vector<size_t> counts_;
  std::vector<uint8_t> responses_;
};

class SecondLevelTest : public ::testing::TestWithParam<Shape> {
 protected:
  SecondLevelTest() {
    layout_.kind = DatabaseKind::kIndex;
    layout_.key_count = 1;
    layout_.shard_count = GetParam().shard_count;
    layout_.row_count = 2048;
    layout_.arity = 1;
    layout_.record = {0, 0, GetParam().record_bytes};
    layout_.lwe = find_lwe_params("ring-2048");
    layout_.query_bits = 28;
    // Words of 11 bits leave no room for the noise of 1023 key switches.
    const uint32_t word_bits = GetParam().has_short_key ? 11 : 10;
    layout_.response_bits = word_bits;
    layout_.hint_bits = 18;
    layout_.second = plan_second_level(layout_, GetParam().has_short_key);
    EXPECT_TRUE(layout_.second);
    EXPECT_EQ(layout_.second->key_order > 0, GetParam().has_short_key);
    // Words near where the byte changes: one more, or two less, are another byte.
    const uint32_t most = (1u << (word_bits - 9)) - 1;
    std::vector<uint32_t> words;
    for (uint64_t c = 0; c < layout_.column_count(); ++c) {
      const auto byte = static_cast<uint8_t>(random_());
      const uint32_t apart = random_() % 2 == 0 ? most : 0 - most;
      bytes_.push_back(byte);
      words.push_back(restore_word((byte << (word_bits - 8)) + apart, word_bits));
    }
    std::vector<uint8_t> response(bit_sequence_bytes(words.size(), word_bits));
    write_bit_sequence(words, word_bits, response);
    const uint64_t first_bytes = layout_.query_words_bytes() + ring::kKeyBytes;
    for (uint32_t first = 0; first < layout_.second_row_count(); first += 2048) {
      blocks_.resize(blocks_.size() + 2048);
      polynomials_.fill_second_block(first / 2048, ring::MutablePolynomial(&blocks_[first], 2048));
    }
    key_masks_ =
        GetParam().has_short_key ? polynomials_.short_key_masks() : polynomials_.key_masks();
    pipeline_ = make_second_level_pipeline(
        std::make_unique<FirstLevel>(std::move(response), first_bytes),
        second_level_spec(layout_, blocks_, key_masks_), layout_.column_count(), kSlots, 2);
  }

  // Masks of zeros: what is under the secret in the first level is nothing.
  std::vector<uint8_t> record(DecodingSecret secret, uint32_t shard,
                              std::span<const uint8_t> response) const {
    const HintParts parts = layout_.hint_parts_of(shard);
    const std::vector<uint8_t> masks((parts.last - parts.first + 1) * layout_.hint_part_bytes());
    const SecretBuffer<uint32_t> words = words_of_shard(layout_, shard, response);
    return decode(std::move(secret), layout_, shard, words.span(), masks);
  }
  std::vector<uint8_t> expected(uint32_t shard) const {
    const auto first = bytes_.begin() + static_cast<std::ptrdiff_t>(shard) * layout_.record_bytes();
    return {first, first + layout_.record_bytes()};
  }

  static constexpr size_t kSlots = 6;
  const ring::PublicPolynomials polynomials_{ChaChaKey{3}};
  std::mt19937_64 random_{51};
  Layout layout_;
  std::vector<uint8_t> bytes_;
  std::vector<uint32_t> blocks_, key_masks_;
  std::unique_ptr<AnswerPipeline> pipeline_;
};

TEST_P(SecondLevelTest, GivesTheRecordOfTheShardThatIsAskedFor) {
  const RingQueryMaker maker(
      polynomials_, layout_.row_count,
      RingQueryMaker::Second{layout_.second_row_count(), layout_.second->key_order});
  const std::vector<uint32_t> shards = {0, layout_.shard_count - 1, layout_.shard_count / 2, 1};
  std::vector<PreparedQuery> prepared = maker.make(shards.size(), seeded_random(52));
  std::vector<std::optional<DecodingSecret>> secrets;
  for (size_t i = 0; i < shards.size(); ++i) {
    std::vector<uint8_t> query(layout_.query_bytes());
    const KeyPlace place = {.shard = shards[i]};
    secrets.emplace_back(std::move(prepared[i]).encrypt({&place, 1}, layout_, query));
    pipeline_->put(i, query);
  }
  pipeline_->move(3, 5);
  // Two batches at the same time, and slots that moved.
  pipeline_->begin(0, 3);
  pipeline_->begin(5, 1);
  const auto first = pipeline_->finish();
  std::vector<uint8_t> responses(first.begin(), first.end());
  const auto second = pipeline_->finish();
  responses.insert(responses.end(), second.begin(), second.end());
  ASSERT_EQ(responses.size(), shards.size() * layout_.response_bytes());
  for (size_t i = 0; i < shards.size(); ++i) {
    const auto response =
        std::span(responses).subspan(i * layout_.response_bytes(), layout_.response_bytes());
    EXPECT_EQ(record(std::move(*secrets[i]), shards[i], response), expected(shards[i]))
        << "shard " << shards[i];
  }
}

INSTANTIATE_TEST_SUITE_P(All, SecondLevelTest,
                         ::testing::Values(Shape{7, 300, false}, Shape{40, 20, true},
                                           Shape{3, 1'500, false}, Shape{2'100, 8, true}));

}  // namespace
}  // namespace blindfuse
