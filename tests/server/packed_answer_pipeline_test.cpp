#include "host/cpu/pipelines/packed_answer_pipeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <future>

#include "host/engines/engine_factory.h"
#include "host/server/serving/batch_scheduler.h"
#include "tests/engine/packed_reference.h"
#include "tests/server/ask_and_wait.h"
#include "tests/server/packed_database.h"

namespace blindfuse::server_testing {
namespace {

using support::as_bytes;

constexpr WireBits kBits{kQueryBits, kResponseBits};

// Responses of a batch, one after another, taken apart.
std::vector<std::string> taken_apart(std::span<const uint8_t> responses) {
  std::vector<std::string> all;
  EXPECT_EQ(responses.size() % kPackedResponseBytes, 0u);
  for (size_t at = 0; at < responses.size(); at += kPackedResponseBytes) {
    const auto one = responses.subspan(at, kPackedResponseBytes);
    all.emplace_back(one.begin(), one.end());
  }
  return all;
}

// The seeds are those of the queries that are in the slots.
void expect_batch(AnswerPipeline& pipeline, size_t first, const std::vector<uint64_t>& seeds) {
  pipeline.begin(first, seeds.size());
  const std::vector<std::string> found = taken_apart(pipeline.finish());
  ASSERT_EQ(found.size(), seeds.size());
  for (size_t i = 0; i < seeds.size(); ++i) {
    EXPECT_TRUE(found[i] == packed_response(seeds[i])) << "slot " << first + i;
  }
}

TEST(PackedAnswerPipeline, AnswersAsThePackerDoesOnAnyNumberOfThreads) {
  const auto engine = packed_engine(make_engine("cpu", kPackedRows, kPackedColumns, 1));
  for (const unsigned thread_count : {1u, 2u, 5u}) {
    SCOPED_TRACE(std::to_string(thread_count) + " threads");
    WorkerThreads threads(thread_count);
    const auto pipeline =
        make_cpu_packed_answer_pipeline(*engine, kBits, random_packing_tables(), 7, 5, threads);
    EXPECT_EQ(pipeline->depth(), 1u);
    for (uint64_t slot = 0; slot < 7; ++slot) pipeline->put(slot, as_bytes(packed_query(slot)));
    expect_batch(*pipeline, 0, {0});
    expect_batch(*pipeline, 1, {1, 2, 3, 4, 5});
    expect_batch(*pipeline, 5, {5, 6});
    // Another query in a slot that was used, and one in two slots.
    pipeline->put(3, as_bytes(packed_query(6)));
    expect_batch(*pipeline, 2, {2, 6, 4});
    // A batch that was begun is over when it was finished.
    expect_batch(*pipeline, 0, {0, 1});
  }
}

TEST(PackedAnswerPipeline, MovesQueriesWithTheirKeys) {
  const auto engine = packed_engine();
  const auto pipeline = engine->make_packed_answer_pipeline(kBits, random_packing_tables(), 6, 3);
  for (uint64_t slot = 0; slot < 6; ++slot) pipeline->put(slot, as_bytes(packed_query(slot)));
  pipeline->move(2, 1);
  pipeline->move(5, 2);
  expect_batch(*pipeline, 0, {0, 2, 5});
}

// What engines are compared with is what the host's packer makes.
TEST(PackedAnswerPipeline, AnswersAsDefined) {
  const PackedQuery query(0);
  std::vector<uint32_t> words, products(kPackedColumns);
  for (const uint32_t number : query.numbers) words.push_back(number << (32 - kQueryBits));
  packed_engine()->multiply({words.data(), 1, kPackedRows}, {0, kPackedRows},
                            {products.data(), 1, kPackedColumns});
  const std::vector<uint8_t> defined = support::packed_reference(
      products, random_packing_tables(), as_bytes(query.keys), kResponseBits);
  EXPECT_TRUE(packed_response(0) == std::string(defined.begin(), defined.end()));
}

// The same words ask with other keys, and other words with the same keys.
TEST(PackedAnswerPipeline, KeepsWordsAndKeysTogether) {
  PackedQuery words_of_others(0);
  words_of_others.numbers = PackedQuery(1).numbers;
  const std::string response_of_others = packed_response(words_of_others);
  ASSERT_NE(response_of_others, packed_response(0));
  ASSERT_NE(response_of_others, packed_response(1));
  const auto engine = packed_engine();
  const auto pipeline = engine->make_packed_answer_pipeline(kBits, random_packing_tables(), 3, 3);
  pipeline->put(0, as_bytes(packed_query(0)));
  pipeline->put(1, as_bytes(words_of_others.bytes()));
  pipeline->put(2, as_bytes(packed_query(1)));
  pipeline->begin(0, 3);
  const std::vector<std::string> found = taken_apart(pipeline->finish());
  ASSERT_EQ(found.size(), 3u);
  EXPECT_TRUE(found[0] == packed_response(0));
  EXPECT_TRUE(found[1] == response_of_others);
  EXPECT_TRUE(found[2] == packed_response(1));
}

// Queries are moved over those that no client waits for, and their keys with them.
TEST(PackedScheduler, LeavesOutWhomNobodyWaitsFor) {
  const auto control = std::make_shared<TestEngine::Control>();
  const auto engine =
      packed_engine(std::make_unique<TestEngine>(control, kPackedRows, kPackedColumns));
  BatchScheduler scheduler(*engine, packed_layout(), {.batch_max = 4, .queue_max = 8}, nullptr,
                           random_packing_tables());
  control->hold();
  auto first = ask_later(scheduler, as_bytes(packed_query(0)));
  control->wait_for_batches(1);
  EXPECT_TRUE(scheduler.ask(as_bytes(packed_query(1) + packed_query(2)))->drop());
  auto others = ask_later(scheduler, as_bytes(packed_query(3) + packed_query(4)));
  control->release();
  EXPECT_TRUE(first.get() == packed_response(0));
  EXPECT_TRUE(others.get() == packed_response(3) + packed_response(4));
}

// A layout of five buckets, each of one shard.
TEST(PackedScheduler, AnswersTheColumnsOfEachBucketWithItsWords) {
  constexpr uint32_t kBuckets = kPackedShards, kBucketColumns = kPackedRecordBytes;
  const auto engine = packed_engine();
  Layout layout = packed_layout();
  layout.batch = BatchCode{.keys_per_request = 2, .bucket_count = kBuckets};
  BatchScheduler scheduler(*engine, layout, {.batch_max = 1, .queue_max = 1}, nullptr,
                           random_packing_tables());
  Numbers numbers;
  std::vector<uint32_t> products;
  for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
    const PackedQuery query(20 + bucket);
    numbers.insert(numbers.end(), query.numbers.begin(), query.numbers.end());
    std::vector<uint32_t> words, of_all(kPackedColumns);
    for (const uint32_t number : query.numbers) words.push_back(number << (32 - kQueryBits));
    engine->multiply({words.data(), 1, kPackedRows}, {0, kPackedRows},
                     {of_all.data(), 1, kPackedColumns});
    const auto first = of_all.begin() + bucket * kBucketColumns;
    products.insert(products.end(), first, first + kBucketColumns);
  }
  const std::string keys = PackedQuery(20).keys;
  const std::vector<uint8_t> expected =
      support::packed_reference(products, random_packing_tables(), as_bytes(keys), kResponseBits);
  EXPECT_TRUE(ask_and_wait(scheduler, as_bytes(pack(numbers, kQueryBits) + keys)) ==
              std::string(expected.begin(), expected.end()));
}

}  // namespace
}  // namespace blindfuse::server_testing
