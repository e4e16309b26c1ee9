#include "host/engines/canary_response.h"

#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "host/cpu/pipelines/answer_pipeline.h"
#include "host/cpu/pipelines/packed_answer_pipeline.h"
#include "host/cpu/pipelines/second_level_pipeline.h"
#include "host/system/worker_threads.h"
#include "src/arithmetic/bit_sequence.h"
#include "src/arithmetic/little_endian.h"
#include "src/arithmetic/ring/packing_keys.h"
#include "src/arithmetic/ring/prime_field.h"
#include "src/base/errors.h"

namespace blindfuse {
namespace {

// An engine that knows the one product it is asked for, and has no matrix.
class KnownProduct final : public Engine {
 public:
  explicit KnownProduct(const Canary& canary) : canary_(canary) {}

  std::string_view name() const override { return "known-product"; }
  std::string hardware() const override { return ""; }
  uint64_t row_count() const override { return canary_.words.size(); }
  uint64_t column_count() const override { return canary_.products.size(); }
  uint64_t host_bytes(std::span<const ColumnRange>, const Engine*) const override { return 0; }
  void set_columns(uint64_t, std::span<const uint8_t>) override { refuse(); }
  bool share_columns(uint64_t, uint64_t, const Engine&) override { return false; }
  void seal() override {}

  void multiply_columns(QueryBatch queries, RowRange, ColumnRange columns,
                        ProductBatch products) override {
    invariant(queries.count == 1 && products.count == 1, "the canary's query alone");
    for (size_t c = 0; c < columns.count; ++c) {
      products.words[c] += canary_.products[columns.first + c];
    }
  }

  std::unique_ptr<PanelProducts> make_panel_products(size_t, uint64_t) override { refuse(); }
  std::unique_ptr<AnswerPipeline> make_answer_pipeline(WireBits, size_t, size_t) override {
    refuse();
  }
  std::unique_ptr<AnswerPipeline> make_packed_answer_pipeline(WireBits,
                                                              std::span<const SharedPackingTable>,
                                                              size_t, size_t,
                                                              const SecondLevelSpec*,
                                                              size_t) override {
    refuse();
  }

 private:
  [[noreturn]] static void refuse() {
    invariant(false, "a known product has one product and no matrix");
    std::abort();
  }

  const Canary& canary_;
};

// Not secret, and not a key of anything: what is packed is compared, and not decoded.
void append_packing_key(std::vector<uint8_t>& query, const RandomSource& random) {
  const size_t first = query.size();
  query.resize(first + ring::kKeyBytes);
  random(std::span(query).subspan(first));
  for (size_t i = 0; i < ring::kKeyWords; ++i) {
    // Drawn again where it is not below the modulus, as one in 350,000 is not.
    uint8_t* const word = query.data() + first + 4 * i;
    while (load_le<uint32_t>(word) >= ring::kPackingModulus) random({word, 4});
  }
}

// Of one query.
std::vector<uint8_t> response_to(AnswerPipeline& pipeline, std::span<const uint8_t> query) {
  pipeline.put(0, query);
  pipeline.begin(0, 1);
  const auto response = pipeline.finish();
  return {response.begin(), response.end()};
}

// What a canary's query brings for the second level: a short key, if there is one, and any numbers.
std::vector<uint8_t> second_query(const SecondLevelSpec& spec, const RandomSource& random) {
  std::vector<uint8_t> query;
  if (spec.key_order > 0) append_packing_key(query, random);
  std::vector<uint32_t> numbers(spec.row_count);
  random({reinterpret_cast<uint8_t*>(numbers.data()), numbers.size() * sizeof(uint32_t)});
  const size_t first = query.size();
  query.resize(first + bit_sequence_bytes(numbers.size(), spec.query_bits));
  write_bit_sequence(numbers, spec.query_bits, std::span(query).subspan(first));
  return query;
}

}  // namespace

void complete_canary(Canary& canary, const Layout& layout,
                     std::span<const SharedPackingTable> tables, unsigned thread_count,
                     const RandomSource& random, const SecondLevelSpec* second) {
  const WireBits bits{layout.query_bits, layout.response_bits};
  random({reinterpret_cast<uint8_t*>(&canary.seed), sizeof canary.seed});
  canary.bucket_count = layout.bucket_count();
  std::vector<uint32_t> words;
  for (size_t bucket = 0; bucket < canary.bucket_count; ++bucket) {
    words.insert(words.end(), canary.words.begin(), canary.words.end());
  }
  canary.query.resize(bit_sequence_bytes(words.size(), bits.query));
  write_bit_sequence(words, bits.query, canary.query);
  KnownProduct engine(canary);
  WorkerThreads threads(thread_count);
  std::unique_ptr<AnswerPipeline> pipeline;
  if (layout.mode() == Mode::kPacked) {
    append_packing_key(canary.query, random);
    pipeline =
        make_cpu_packed_answer_pipeline(engine, bits, tables, 1, 1, threads, canary.bucket_count);
  } else {
    pipeline = make_cpu_answer_pipeline(engine, bits, 1, 1);
  }
  canary.response = response_to(*pipeline, canary.query);
  if (!layout.second) return;
  invariant(second != nullptr, "a second level with its public polynomials");
  canary.second_query = second_query(*second, random);
  const auto both = make_second_level_pipeline(std::move(pipeline), *second, canary.products.size(),
                                               1, thread_count);
  std::vector<uint8_t> query = canary.query;
  query.insert(query.end(), canary.second_query.begin(), canary.second_query.end());
  canary.second_response = response_to(*both, query);
}

}  // namespace blindfuse
