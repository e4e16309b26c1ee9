#include "bench/load/answer_check.h"

#include <blindfuse/errors.h>

#include <algorithm>
#include <utility>

#include "client/decoder.h"

namespace blindfuse::load {
namespace {

constexpr size_t kVariantsMax = 4;  // of one answer: more than one is wrong already
constexpr size_t kExamplesMax = 5;

SecretBuffer<uint32_t> copy_of(const SecretBuffer<uint32_t>& secret) {
  SecretBuffer<uint32_t> copy(secret.size());
  std::ranges::copy(secret.span(), copy.span().begin());
  return copy;
}

using Value = std::optional<std::string>;

// Returns the value of each key that the request asks for. Throws ProtocolError and CacheError.
std::vector<Value> values_of(const PooledRequest& request, const DatabaseDescription& database,
                             const std::string& body, const ServedDatabase& served) {
  const Layout& layout = database.layout();
  if (body.size() != layout.response_bytes()) throw ProtocolError("it has another length");
  const std::vector<uint8_t> response(body.begin(), body.end());
  std::optional<RingDecoder> decoder;  // of all the keys, if they may be several
  if (layout.batch) decoder.emplace(DecodingSecret(copy_of(request.secret)));
  std::vector<Value> values;
  for (const PooledKey& key : request.keys) {
    const uint32_t shard = key.place.shard;
    const auto words = words_of_shard(layout, shard, response);
    const std::vector<uint8_t> hint = served.hint(database, shard);
    const std::vector<uint8_t> record =
        decoder
            ? decode(*decoder, layout, shard, words.span(), hint)
            : decode(DecodingSecret(copy_of(request.secret)), layout, shard, words.span(), hint);
    values.push_back(database.value_in(record, key.place));
  }
  return values;
}

// Describes the fault of the value that was found for a key; nothing if it is right.
std::optional<std::string> trouble_with(const KnownKey& known, const Value& found) {
  if (known.is_met_by(found)) return std::nullopt;
  const std::string expected = !known.is_there ? "not there"
                               : known.value   ? "the value of the file"
                                               : "there";
  return "expected " + expected + ", the answer says " +
         (found ? "a value of " + std::to_string(found->size()) + " bytes" : "not there");
}

}  // namespace

void CheckResult::merge(const CheckResult& other) {
  checked += other.checked;
  mismatches += other.mismatches;
  for (const std::string& example : other.examples) {
    if (examples.size() < kExamplesMax) examples.push_back(example);
  }
}

void AnswerCheck::set_pool(std::shared_ptr<const QueryPool> pool) {
  const std::lock_guard lock(mutex_);
  pool_ = std::move(pool);
}

void AnswerCheck::keep(const QueryPool& pool, size_t i, std::string body) {
  const std::lock_guard lock(mutex_);
  if (&pool != pool_.get()) return;
  // More different bodies than these are wrong in any case, so a further one counts as one of them.
  auto& bodies = answers_[i];
  if (bodies.size() == kVariantsMax && !bodies.contains(body)) body = bodies.rbegin()->first;
  ++bodies[std::move(body)];
}

CheckResult AnswerCheck::check(const ServedDatabase& served) {
  CheckResult result;
  std::shared_ptr<const QueryPool> pool;
  Answers answers;
  {
    const std::lock_guard lock(mutex_);
    pool = std::exchange(pool_, nullptr);
    answers = std::exchange(answers_, {});
  }
  if (!pool) return result;
  const auto mismatch = [&](const PooledKey& key, uint64_t count, const std::string& what) {
    result.mismatches += count;
    if (result.examples.size() < kExamplesMax) {
      result.examples.push_back("key '" + key.known.key + "': " + what);
    }
  };
  const DatabaseDescription& database = pool->database();
  for (const auto& [i, bodies] : answers) {
    const PooledRequest& request = (*pool)[i];
    for (const auto& [body, count] : bodies) {
      result.checked += count * request.keys.size();
      std::vector<Value> values;
      std::string violation;  // of the whole answer
      try {
        values = values_of(request, database, body, served);
      } catch (const ProtocolError& error) {
        violation = error.what();
      }
      for (size_t k = 0; k < request.keys.size(); ++k) {
        const std::optional<std::string> trouble =
            violation.empty() ? trouble_with(request.keys[k].known, values[k]) : violation;
        if (trouble) mismatch(request.keys[k], count, *trouble);
      }
    }
  }
  return result;
}

}  // namespace blindfuse::load
