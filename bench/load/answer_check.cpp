#include "bench/load/answer_check.h"

#include <blindfuse/errors.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "client/decoder.h"
#include "src/base/base64.h"

namespace blindfuse::load {
namespace {

constexpr size_t kVariantsMax = 4;  // of one answer: more than one is wrong already
constexpr size_t kExamplesMax = 5;

// The packed responses in a body. Throws ProtocolError.
std::vector<std::vector<uint8_t>> responses_in(const std::string& body, BodyFormat format,
                                               size_t count, size_t response_bytes) {
  std::vector<std::vector<uint8_t>> responses;
  if (format == BodyFormat::kBinary) {
    if (body.size() != count * response_bytes) throw ProtocolError("it has another length");
    for (size_t at = 0; at < body.size(); at += response_bytes) {
      const auto first = body.begin() + static_cast<std::ptrdiff_t>(at);
      responses.emplace_back(first, first + static_cast<std::ptrdiff_t>(response_bytes));
    }
    return responses;
  }
  const nlohmann::json json = nlohmann::json::parse(body, nullptr, false);
  const auto found = json.is_object() ? json.find("responses") : json.end();
  if (!json.is_object() || found == json.end() || !found->is_array() || found->size() != count) {
    throw ProtocolError("it is not the JSON of that many responses");
  }
  for (const nlohmann::json& text : *found) {
    auto bytes =
        text.is_string() ? decode_base64(text.get_ref<const std::string&>()) : std::nullopt;
    if (!bytes) throw ProtocolError("a response is not base64");
    responses.emplace_back(bytes->begin(), bytes->end());
  }
  return responses;
}

SecretBuffer<uint32_t> copy_of(const SecretBuffer<uint32_t>& secret) {
  SecretBuffer<uint32_t> copy(secret.size());
  std::ranges::copy(secret.span(), copy.span().begin());
  return copy;
}

using Value = std::optional<std::string>;

// Of each key that the query asks for. Throws ProtocolError and CacheError.
std::vector<Value> values_of(const PooledQuery& query, const DatabaseDescription& database,
                             const std::vector<uint8_t>& response, const ServedDatabase& served) {
  const Layout& layout = database.layout();
  std::optional<RingDecoder> decoder;  // of all the keys, if they may be several
  if (layout.batch) decoder.emplace(DecodingSecret(copy_of(query.secret)));
  std::vector<Value> values;
  for (const PooledKey& key : query.keys) {
    const uint32_t shard = key.place.shard;
    const auto words = words_of_shard(layout, shard, response);
    const std::vector<uint8_t> hint = served.hint(database, shard);
    const std::vector<uint8_t> record =
        decoder ? decode(*decoder, layout, shard, words.span(), hint)
                : decode(DecodingSecret(copy_of(query.secret)), layout, shard, words.span(), hint);
    values.push_back(database.value_in(record, key.place));
  }
  return values;
}

// What is wrong with the value that was found for a key, or nothing.
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
  std::vector<Variant>& variants = answers_[i];
  for (Variant& variant : variants) {
    if (variant.body != body) continue;
    ++variant.count;
    return;
  }
  // Beyond these, all are wrong alike.
  if (variants.size() == kVariantsMax) {
    ++variants.back().count;
  } else {
    variants.push_back({std::move(body), 1});
  }
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
  for (const auto& [i, variants] : answers) {
    const PooledRequest& request = (*pool)[i];
    for (const Variant& variant : variants) {
      result.checked += variant.count * request.key_count;
      std::vector<std::vector<Value>> values;  // of each query
      std::string violation;                   // of the whole answer
      try {
        const auto responses = responses_in(variant.body, format_, request.queries.size(),
                                            database.layout().response_bytes());
        for (size_t q = 0; q < responses.size(); ++q) {
          values.push_back(values_of(request.queries[q], database, responses[q], served));
        }
      } catch (const ProtocolError& error) {
        violation = error.what();
      }
      for (size_t q = 0; q < request.queries.size(); ++q) {
        const std::vector<PooledKey>& keys = request.queries[q].keys;
        for (size_t k = 0; k < keys.size(); ++k) {
          const std::optional<std::string> trouble =
              violation.empty() ? trouble_with(keys[k].known, values[q][k]) : violation;
          if (trouble) mismatch(keys[k], variant.count, *trouble);
        }
      }
    }
  }
  return result;
}

}  // namespace blindfuse::load
