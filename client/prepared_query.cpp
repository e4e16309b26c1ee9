#include "client/prepared_query.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include "client/panel_product.h"
#include "client/report_progress.h"
#include "src/arithmetic/bit_sequence.h"
#include "src/arithmetic/lwe_params.h"
#include "src/arithmetic/ring/modulus_switch.h"
#include "src/arithmetic/ring/prime_field.h"
#include "src/base/errors.h"

namespace blindfuse {
namespace {

// One pass over the panels of A, shared by threads that each take the next panel that no thread
// has.
class PanelPass {
 public:
  PanelPass(const PublicMatrix& a, uint64_t panel_count, std::span<const SecretFactor> factors,
            std::vector<uint32_t*> words)
      : a_(a), panel_count_(panel_count), factors_(factors), words_(std::move(words)) {}

  // Works until no panel is left; after_each(number of panels begun so far) after every panel.
  template <class AfterEach>
  void work(std::span<uint32_t> panel, AfterEach after_each) {
    std::vector<uint32_t*> words(words_.size());
    for (uint64_t j = next_++; j < panel_count_; j = next_++) {
      std::transform(words_.begin(), words_.end(), words.begin(),
                     [j](uint32_t* all) { return all + j * kPanelRows; });
      add_panel_products(a_, j, factors_, words, panel);
      after_each(std::min<uint64_t>(next_, panel_count_));
    }
  }

  void stop() { next_ = panel_count_; }

 private:
  const PublicMatrix& a_;
  const uint64_t panel_count_;
  const std::span<const SecretFactor> factors_;
  const std::vector<uint32_t*> words_;  // where each product begins
  std::atomic<uint64_t> next_ = 0;
};

// Helpers of the calling thread; told to stop and waited for on every way out. What one of them
// throws, finish() throws.
class Helpers {
 public:
  explicit Helpers(PanelPass& pass) : pass_(pass) {}
  ~Helpers() {
    pass_.stop();
    for (std::thread& thread : threads_) thread.join();
  }

  void start(std::span<std::vector<uint32_t>> panels) {
    threads_.reserve(panels.size());
    try {
      for (std::vector<uint32_t>& panel : panels) {
        threads_.emplace_back([this, &panel] { work(panel); });
      }
    } catch (const std::system_error&) {
      // A system that gives fewer threads makes this slower, not impossible.
    }
  }

  void finish() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void work(std::span<uint32_t> panel) {
    try {
      pass_.work(panel, [](uint64_t) {});
    } catch (...) {
      const std::lock_guard lock(failure_mutex_);
      failure_ = std::current_exception();
      pass_.stop();
    }
  }

  PanelPass& pass_;
  std::vector<std::thread> threads_;
  std::mutex failure_mutex_;
  std::exception_ptr failure_;
};

void add_products(const PublicMatrix& a, uint64_t panel_count,
                  std::span<const SecretFactor> factors, std::vector<uint32_t*> words,
                  unsigned thread_count, const ProgressCallback& progress) {
  if (thread_count == 0) thread_count = std::max(1u, std::thread::hardware_concurrency());
  const size_t workers = std::min<uint64_t>(thread_count, panel_count);
  std::vector<std::vector<uint32_t>> panels(workers, std::vector<uint32_t>(a.panel_words()));
  PanelPass pass(a, panel_count, factors, std::move(words));
  Helpers helpers(pass);
  helpers.start(std::span(panels).subspan(1));
  const auto report = [&](uint64_t done) {
    report_progress(progress,
                    {ClientStage::kPreparingQueries, done * kPanelRows, panel_count * kPanelRows});
  };
  pass.work(panels[0], report);
  helpers.finish();
  report(panel_count);  // this thread may have found no panel left, and reported none
}

}  // namespace

SecretBuffer<uint32_t> DecodingSecret::take() && {
  if (words_.empty()) throw std::logic_error("the secret of a query decodes one response");
  return std::move(words_);
}

PreparedQuery::PreparedQuery(ProcessToken maker, const MatrixSeed& seed,
                             SecretBuffer<uint32_t> secret, SecretBuffer<uint32_t> masked,
                             std::vector<uint8_t> packing_keys, SecondQuery second,
                             uint32_t bucket_count)
    : maker_(maker),
      seed_(seed),
      secret_(std::move(secret)),
      masked_(std::move(masked)),
      packing_keys_(std::move(packing_keys)),
      second_(std::move(second)),
      bucket_count_(bucket_count) {}

bool PreparedQuery::is_for(const Manifest& manifest) const {
  const Layout& layout = manifest.layout;
  return seed_ == manifest.seed && secret_.size() == layout.lwe->dimension &&
         masked_.size() == layout.query_word_count() && bucket_count_ == layout.bucket_count() &&
         second_.words.size() == (layout.second ? layout.second_row_count() : 0) &&
         second_.key_order == (layout.second ? layout.second->key_order : 0) &&
         packing_keys_.size() == layout.query_bytes() - layout.query_words_bytes() -
                                     (layout.second ? layout.second_query_bytes() : 0);
}

bool PreparedQuery::is_of_this_process() const { return maker_.is_current(); }

template <class Add>
DecodingSecret PreparedQuery::finish(uint32_t query_bits, std::span<uint8_t> query,
                                     const Add& add) {
  if (masked_.empty()) throw std::logic_error("a prepared query is sent once");
  if (!is_of_this_process()) throw std::logic_error("a prepared query is not for forked processes");
  SecretBuffer<uint32_t> words = std::move(masked_);
  const std::vector<uint8_t> keys = std::exchange(packing_keys_, {});
  const uint64_t words_bytes = bit_sequence_bytes(words.size(), query_bits);
  invariant(query.size() == words_bytes + keys.size(), "room for exactly the query");
  add(words.span());
  write_bit_sequence(words.span(), query_bits, query.first(words_bytes));
  std::copy(keys.begin(), keys.end(), query.begin() + static_cast<ptrdiff_t>(words_bytes));
  return DecodingSecret(std::move(secret_));
}

DecodingSecret PreparedQuery::encrypt(std::span<const uint32_t> rows, uint32_t query_bits,
                                      std::span<uint8_t> query) && {
  return finish(query_bits, query, [rows](std::span<uint32_t> words) {
    for (uint32_t row : rows) {
      invariant(row < words.size(), "rows lie in the database");
      // Wraps, always: a client that drew again when this overflows would tell the server its rows.
      words[row] += 1u << kPlaintextShift;
    }
  });
}

DecodingSecret PreparedQuery::encrypt(std::span<const BucketRows> buckets, const Layout& layout,
                                      std::span<uint8_t> query) && {
  invariant(buckets.size() == layout.bucket_count() && bucket_count_ == layout.bucket_count(),
            "the query has the database's buckets");
  return finish(layout.query_bits, query, [&](std::span<uint32_t> words) {
    for (size_t i = 0; i < buckets.size(); ++i) {
      const auto own = words.subspan(i * layout.row_count, layout.row_count);
      for (uint32_t k = 0; k < layout.arity; ++k) {
        const uint32_t row = buckets[i].rows[k];
        invariant(row < own.size(), "rows lie in the bucket");
        // Adds 0 if the bucket is not asked. Wraps, always, as above.
        own[row] += buckets[i].asks << kPlaintextShift;
      }
    }
  });
}

DecodingSecret PreparedQuery::encrypt(std::span<const uint32_t> rows, uint32_t shard,
                                      const Layout& layout, std::span<uint8_t> query) && {
  const uint64_t second_bytes = layout.second ? layout.second_query_bytes() : 0;
  SecretBuffer<uint32_t> second = std::move(second_.words);
  DecodingSecret secret =
      std::move(*this).encrypt(rows, layout.query_bits, query.first(query.size() - second_bytes));
  if (layout.second) {
    const ring::PrimeField field(ring::kPackingModulus);
    const uint32_t bits = layout.second->query_bits;
    uint32_t& asked = second[layout.second_place(shard).row];
    asked = field.add(asked, ring::switch_to_q(1, layout.response_bits));
    for (uint32_t& word : second.span()) {
      word = restore_word(ring::switch_from_q(word, bits), bits);
    }
    write_bit_sequence(second.span(), bits, query.last(second_bytes));
  }
  return secret;
}

std::vector<PreparedQuery> prepare_queries(const PublicMatrix& a, uint32_t row_count,
                                           uint32_t error_max, size_t count, unsigned thread_count,
                                           const RandomSource& random,
                                           const ProgressCallback& progress) {
  invariant(row_count > 0 && row_count % kPanelRows == 0, "rows come in whole panels");
  const ProcessToken maker = ProcessToken::current();
  std::vector<SecretFactor> factors;
  std::vector<SecretBuffer<uint32_t>> secrets, masked;
  std::vector<uint32_t*> words;
  for (size_t i = 0; i < count; ++i) {
    sample_ternary(random, secrets.emplace_back(a.dimension()).span());
    sample_errors(random, error_max, masked.emplace_back(row_count).span());
    factors.emplace_back(secrets.back().span());
    words.push_back(masked.back().span().data());
  }
  if (count > 0) {
    add_products(a, row_count / kPanelRows, factors, std::move(words), thread_count, progress);
  }
  std::vector<PreparedQuery> queries;
  for (size_t i = 0; i < count; ++i) {
    queries.emplace_back(maker, a.seed(), std::move(secrets[i]), std::move(masked[i]));
  }
  return queries;
}

}  // namespace blindfuse
