#include "client/prepared_query.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include "client/deadline.h"
#include "client/secret_product.h"
#include "src/arithmetic/bit_sequence.h"
#include "src/arithmetic/lwe_params.h"
#include "src/arithmetic/ring/modulus_switch.h"
#include "src/arithmetic/ring/prime_field.h"
#include "src/base/errors.h"

namespace blindfuse {
namespace {

// Threads that end, with no panel left to take, and are waited for on every way out.
struct Helpers {
  ~Helpers() {
    next_panel = panel_count;
    for (std::thread& thread : threads) thread.join();
  }

  std::atomic<uint64_t>& next_panel;
  const uint64_t panel_count;
  std::vector<std::thread> threads = {};
};

// Makes one pass over the panels of A: this thread and its helpers each take the next panel that no
// thread has. `words`: where each product begins.
void add_products(const PublicMatrix& a, uint64_t panel_count,
                  std::span<const SecretFactor> factors, std::span<uint32_t* const> words,
                  unsigned thread_count, const ProgressCallback& progress) {
  if (thread_count == 0) thread_count = std::max(1u, std::thread::hardware_concurrency());
  const size_t workers = std::min<uint64_t>(thread_count, panel_count);
  std::vector<std::vector<uint32_t>> panels(workers, std::vector<uint32_t>(a.panel_words()));
  std::atomic<uint64_t> next = 0;
  const auto work = [&](std::span<uint32_t> panel, const auto& after_each) {
    std::vector<uint32_t*> here(words.size());
    for (uint64_t j = next++; j < panel_count; j = next++) {
      std::transform(words.begin(), words.end(), here.begin(),
                     [j](uint32_t* all) { return all + j * kPanelRows; });
      add_panel_products(a, j, factors, here, panel);
      after_each(std::min<uint64_t>(next, panel_count));
    }
  };
  const auto report = [&](uint64_t done) {
    report_progress(progress,
                    {ClientStage::kPreparingQueries, done * kPanelRows, panel_count * kPanelRows});
  };
  std::mutex failure_mutex;
  std::exception_ptr failure;  // of a helper
  const auto help = [&](std::span<uint32_t> panel) {
    try {
      work(panel, [](uint64_t) {});
    } catch (...) {
      const std::lock_guard lock(failure_mutex);
      failure = std::current_exception();
      next = panel_count;
    }
  };
  {
    Helpers helpers{next, panel_count};
    helpers.threads.reserve(workers);
    try {
      for (size_t i = 1; i < workers; ++i) helpers.threads.emplace_back(help, std::span(panels[i]));
    } catch (const std::system_error&) {
      // The work is only slower if the system gives fewer threads.
    }
    work(panels[0], report);
  }
  if (failure) std::rethrow_exception(failure);
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
DecodingSecret PreparedQuery::consume(uint32_t query_bits, std::span<uint8_t> query,
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
  return consume(query_bits, query, [rows](std::span<uint32_t> words) {
    for (uint32_t row : rows) {
      invariant(row < words.size(), "rows lie in the database");
      // The sum always wraps: a client that drew again when this overflows would tell the server
      // its rows.
      words[row] += 1u << kPlaintextShift;
    }
  });
}

DecodingSecret PreparedQuery::encrypt(std::span<const KeyPlace> places, const Layout& layout,
                                      std::span<uint8_t> query) && {
  invariant(places.size() == layout.bucket_count() && bucket_count_ == layout.bucket_count(),
            "the query has the database's buckets");
  const uint64_t second_bytes = layout.second ? layout.second_query_bytes() : 0;
  SecretBuffer<uint32_t> second = std::move(second_.words);
  const auto add = [&](std::span<uint32_t> words) {
    for (size_t i = 0; i < places.size(); ++i) {
      const auto own = words.subspan(i * layout.row_count, layout.row_count);
      for (uint32_t k = 0; k < layout.arity; ++k) {
        const uint32_t row = places[i].rows[k];
        invariant(row < own.size(), "rows lie in the bucket");
        own[row] += places[i].asks << kPlaintextShift;  // wraps, always, as above
      }
    }
  };
  DecodingSecret secret = consume(layout.query_bits, query.first(query.size() - second_bytes), add);
  if (layout.second) {
    const ring::PrimeField field(ring::kPackingModulus);
    const uint32_t bits = layout.second->query_bits;
    uint32_t& asked = second[layout.second_place(places.front().shard).row];
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
    add_products(a, row_count / kPanelRows, factors, words, thread_count, progress);
  }
  std::vector<PreparedQuery> queries;
  for (size_t i = 0; i < count; ++i) {
    queries.emplace_back(maker, a.seed(), std::move(secrets[i]), std::move(masked[i]));
  }
  return queries;
}

}  // namespace blindfuse
