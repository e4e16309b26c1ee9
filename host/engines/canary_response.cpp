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
#include "src/arithmetic/ring/packing_key_format.h"
#include "src/arithmetic/ring/prime_field.h"
#include "src/base/errors.h"

namespace blindfuse {
namespace {

// An engine that knows the one product it is asked for, a multiple of the canary's, and has no
// matrix.
class KnownProduct final : public Engine {
 public:
  KnownProduct(const Canary& canary, uint32_t factor) : canary_(canary), factor_(factor) {}

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
      products.words[c] += factor_ * canary_.products[columns.first + c];
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
  const uint32_t factor_;
};

// This key is not secret: the packed words are compared, and not decoded.
void append_packing_key(std::vector<uint8_t>& query, const RandomSource& random) {
  const size_t first = query.size();
  query.resize(first + ring::kKeyBytes);
  random(std::span(query).subspan(first));
  for (size_t i = 0; i < ring::kKeyWords; ++i) {
    // A word that is not below the modulus, as one in 350,000, is drawn again.
    uint8_t* const word = query.data() + first + 4 * i;
    while (load_le<uint32_t>(word) >= ring::kPackingModulus) random({word, 4});
  }
}

// Appends a query's part for the second level: a short key, if there is one, and any numbers.
void append_second_query(std::vector<uint8_t>& query, const SecondLevelSpec& spec,
                         const RandomSource& random) {
  if (spec.key_order > 0) append_packing_key(query, random);
  std::vector<uint32_t> numbers(spec.row_count);
  random({reinterpret_cast<uint8_t*>(numbers.data()), numbers.size() * sizeof(uint32_t)});
  const size_t first = query.size();
  query.resize(first + bit_sequence_bytes(numbers.size(), spec.query_bits));
  write_bit_sequence(numbers, spec.query_bits, std::span(query).subspan(first));
}

}  // namespace

void complete_canary(Canary& canary, const Layout& layout,
                     std::span<const SharedPackingTable> tables, unsigned thread_count,
                     const RandomSource& random, const SecondLevelSpec* second) {
  const WireBits bits{layout.query_bits, layout.response_bits};
  const bool is_packed = layout.mode() == Mode::kPacked;
  invariant(!layout.second || second != nullptr, "a second level with its public polynomials");
  canary.bucket_count = layout.bucket_count();
  WorkerThreads threads(thread_count);
  uint32_t factor = 1;  // odd multiples have other limbs
  for (Canary::Exchange& exchange : canary.exchanges) {
    std::vector<uint32_t> words;
    for (size_t bucket = 0; bucket < canary.bucket_count; ++bucket) {
      for (const uint32_t word : canary.words) words.push_back(factor * word);
    }
    exchange.query.resize(bit_sequence_bytes(words.size(), bits.query));
    write_bit_sequence(words, bits.query, exchange.query);
    if (is_packed) append_packing_key(exchange.query, random);
    KnownProduct engine(canary, factor);
    std::unique_ptr<AnswerPipeline> pipeline =
        is_packed ? make_cpu_packed_answer_pipeline(engine, bits, tables, 1, 1, threads,
                                                    canary.bucket_count)
                  : make_cpu_answer_pipeline(engine, bits, 1, 1);
    if (layout.second) {
      append_second_query(exchange.query, *second, random);
      pipeline = make_second_level_pipeline(std::move(pipeline), *second, canary.products.size(), 1,
                                            thread_count);
    }
    pipeline->put(0, exchange.query);
    pipeline->begin(0, 1);
    const auto response = pipeline->finish();
    exchange.response.assign(response.begin(), response.end());
    factor += 2;
  }
}

}  // namespace blindfuse
