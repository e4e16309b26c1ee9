// A server for client tests that follows docs/PROTOCOL.md by the slow reference, and misbehaves on
// request.
#pragma once

#include <blindfuse/errors.h>

#include <cstdint>
#include <deque>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "client/transport.h"
#include "src/base/hex.h"
#include "src/protocol/epoch_table.h"
#include "src/protocol/manifest.h"
#include "tests/paths.h"
#include "tests/reference_pir.h"

namespace blindfuse {

using Bytes = reference_pir::Bytes;

inline nlohmann::json read_vectors(const std::string& name) {
  std::ifstream file(paths::source_folder() + "/tests/vectors/" + name);
  return nlohmann::json::parse(file);
}

inline Bytes bytes_of_hex(const nlohmann::json& hex) {
  const std::optional<std::string> bytes = decode_hex(hex.get<std::string>());
  return Bytes(bytes->begin(), bytes->end());
}

// A database as a server has it. Copies are cheap to alter: every hash follows from the matrices.
class ServedDatabase {
 public:
  // All of it made elsewhere: the hint's parts, in the clients' form, and what answers a request's
  // queries. The hashes of hints and masks in the table are filled in here.
  ServedDatabase(const Manifest& manifest, EpochTable table, std::vector<Bytes> hints,
                 std::function<Bytes(const Bytes&)> responder)
      : manifest_(manifest),
        epoch_table_(std::move(table)),
        hints_(std::move(hints)),
        responder_(std::move(responder)) {
    for (size_t part = 0; part < hints_.size(); ++part) set_hint_hash(part);
    finish();
  }

  // From tests/vectors: "database_keyword.json" or "database_index.json".
  static const ServedDatabase& from_vectors(std::string_view file) {
    static std::map<std::string, ServedDatabase> databases;
    const std::string name(file);
    auto found = databases.find(name);
    if (found == databases.end()) found = databases.emplace(name, ServedDatabase(name)).first;
    return found->second;
  }

  // A database whose hints, or masks, are `hint_seed`-dependent noise: for what only moves them
  // about.
  static ServedDatabase with_noise(uint32_t shard_count, uint32_t value_bytes, uint8_t hint_seed,
                                   const char* lwe = "lwe-1288", uint32_t hint_bits = 16) {
    ServedDatabase database;
    Layout& layout = database.manifest_.layout;
    layout = {.kind = DatabaseKind::kIndex,
              .key_count = shard_count,
              .shard_count = shard_count,
              .row_count = find_lwe_params(lwe)->mode == Mode::kPacked ? 2048u : 64u,
              .arity = 1,
              .segment_length = 0,
              .record = {0, 0, value_bytes},
              .lwe = find_lwe_params(lwe),
              .query_bits = 32,
              .response_bits = 32,
              .hint_bits = hint_bits,
              .second = {},
              .batch = {}};
    database.epoch_table_.shards.resize(shard_count);
    database.epoch_table_.packs.resize(layout.pack_count());
    database.hints_.resize(layout.hint_part_count());
    for (uint32_t part = 0; part < layout.hint_part_count(); ++part) {
      database.set_noise(part, hint_seed);
    }
    database.finish();
    return database;
  }

  // The same with other noise in one shard's hint, or one pack's mask.
  ServedDatabase with_other_noise(uint32_t part, uint8_t hint_seed) const {
    ServedDatabase changed = *this;
    changed.set_noise(part, hint_seed);
    changed.finish();
    return changed;
  }

  // The same with the hint of `from` in `part` too.
  ServedDatabase with_same_hint(uint32_t part, uint32_t from) const {
    ServedDatabase changed = *this;
    changed.hints_[part] = hints_[from];
    changed.set_hint_hash(part);
    changed.finish();
    return changed;
  }

  // The same with 1 added to every byte of one shard's matrix.
  ServedDatabase with_shard_incremented(uint32_t shard) const {
    ServedDatabase changed = *this;
    for (uint8_t& byte : changed.matrices_[shard].bytes) byte = static_cast<uint8_t>(byte + 1);
    changed.compute_hint(shard);
    changed.finish();
    return changed;
  }

  // The same keys under another public matrix.
  ServedDatabase with_other_seed() const {
    ServedDatabase changed = *this;
    changed.manifest_.seed[0] ^= 1;
    for (uint32_t shard = 0; shard < changed.matrices_.size(); ++shard) changed.compute_hint(shard);
    changed.finish();
    return changed;
  }

  // The same with a manifest that has this signature, or none.
  ServedDatabase with_signature(const std::optional<ManifestSignature>& signature) const {
    ServedDatabase changed = *this;
    changed.text_ = serialize_manifest(manifest_, signature);
    return changed;
  }

  // The same with a second level, whose responses mean as little. The first level's have 10 bits.
  ServedDatabase with_second_level(const SecondLevel& second) const {
    ServedDatabase changed = *this;
    changed.manifest_.layout.response_bits = 10;
    changed.manifest_.layout.second = second;
    changed.finish();
    return changed;
  }

  const Manifest& manifest() const { return manifest_; }
  const std::string& manifest_text() const { return text_; }
  const EpochId& epoch() const { return epoch_; }
  const Layout& layout() const { return manifest_.layout; }
  const Bytes& table() const { return table_; }
  // Of all shards, or the masks of all packs.
  const std::vector<Bytes>& hints() const { return hints_; }

  // Zeros where there is only noise.
  Bytes respond(const Bytes& queries) const {
    if (responder_) return responder_(queries);
    if (matrices_.empty()) {
      return Bytes(queries.size() / layout().query_bytes() * layout().response_bytes());
    }
    Bytes responses;
    const reference_pir::Matrix all = reference_pir::side_by_side(matrices_);
    for (size_t at = 0; at < queries.size(); at += layout().query_bytes()) {
      const Bytes query = reference_pir::slice(queries, at, layout().query_bytes());
      const auto words = reference_pir::respond(query, layout().query_bits, all);
      using reference_pir::operator+;
      responses =
          std::move(responses) + reference_pir::round_and_pack(*words, layout().response_bits);
    }
    return responses;
  }

 private:
  ServedDatabase() = default;

  explicit ServedDatabase(const std::string& name) {
    const nlohmann::json vectors = read_vectors(name);
    manifest_ = parse_manifest(vectors["manifest"].dump()).manifest;
    for (const nlohmann::json& shard : vectors["shards"]) {
      reference_pir::Matrix& matrix =
          matrices_.emplace_back(layout().row_count, layout().record_bytes());
      matrix.bytes.clear();
      for (const nlohmann::json& column : shard["matrix_columns"]) {
        using reference_pir::operator+;
        matrix.bytes = matrix.bytes + bytes_of_hex(column);
      }
      hints_.emplace_back();
      ShardEntry& entry = epoch_table_.shards.emplace_back();
      entry.filter_seed = std::stoull(shard["filter_seed"].get<std::string>(), nullptr, 16);
      entry.key_count = shard["key_count"];
      entry.input = digest_of(bytes_of_hex(shard["input_sha256"]));
      compute_hint(static_cast<uint32_t>(matrices_.size() - 1));
    }
    finish();
  }

  static Sha256Digest digest_of(const Bytes& bytes) {
    Sha256Digest digest;
    std::copy(bytes.begin(), bytes.end(), digest.begin());
    return digest;
  }

  void compute_hint(uint32_t shard) {
    const Bytes seed(manifest_.seed.begin(), manifest_.seed.end());
    const auto a = reference_pir::public_matrix(seed, layout().lwe->dimension, layout().row_count);
    hints_[shard] =
        reference_pir::round_and_pack(reference_pir::hint(a, matrices_[shard]), layout().hint_bits);
    epoch_table_.shards[shard].matrix = digest_of(reference_pir::sha256(matrices_[shard].bytes));
    set_hint_hash(shard);
  }

  void set_noise(uint32_t part, uint8_t hint_seed) {
    const Bytes name = {static_cast<uint8_t>(part), static_cast<uint8_t>(part >> 8), hint_seed};
    const Bytes noise = reference_pir::sha256(name);
    Bytes& hint = hints_[part];
    hint.resize(layout().hint_part_bytes());
    for (size_t i = 0; i < hint.size(); ++i) hint[i] = static_cast<uint8_t>(noise[i % 32] + i / 32);
    set_hint_hash(part);
  }

  void set_hint_hash(size_t part) {
    const bool packed = layout().mode() == Mode::kPacked;
    Sha256Digest& hash = packed ? epoch_table_.packs[part].mask : epoch_table_.shards[part].hint;
    hash = digest_of(reference_pir::sha256(hints_[part]));
  }

  void finish() {
    table_ = serialize_epoch_table(epoch_table_);
    manifest_.table = digest_of(reference_pir::sha256(table_));
    text_ = serialize_manifest(manifest_);
    epoch_ = epoch_id(manifest_);
  }

  Manifest manifest_;
  std::vector<reference_pir::Matrix> matrices_;
  EpochTable epoch_table_;
  std::vector<Bytes> hints_;
  std::function<Bytes(const Bytes&)> responder_;
  std::string text_;
  EpochId epoch_;
  Bytes table_;
};

struct SeenRequest {
  std::string method;
  std::string path;
  uint64_t first_byte = 0;
  Bytes body;
  bool cut_later = false;  // by whoever passes the answer on
};

// Answers on any thread; what it was asked is for the thread that looks at it.
class FakeServer {
 public:
  explicit FakeServer(ServedDatabase served) : database(std::move(served)) {}

  ServedDatabase database;
  std::vector<SeenRequest> requests;
  std::deque<HttpReply> errors;            // answered, one after another, to the next queries
  std::optional<ServedDatabase> in_grace;  // an earlier epoch that is still served
  std::optional<uint64_t> break_after;     // bytes of hints after which the connection breaks, once
  bool ignore_ranges = false;
  bool declare_length = true;
  std::function<void(Bytes&)> alter_body;  // of every success
  size_t queries_max = 16;                 // in a request
  size_t piece_bytes = 1000;

  size_t count(const std::string& path_part) const { return seen(path_part).size(); }
  std::vector<SeenRequest> seen(const std::string& path_part) const {
    const std::lock_guard lock(mutex_);
    std::vector<SeenRequest> found;
    for (const SeenRequest& request : requests) {
      if (request.path.find(path_part) != std::string::npos) found.push_back(request);
    }
    return found;
  }

  HttpReply answer(const SeenRequest& request, BodyReceiver& receiver) {
    const std::lock_guard lock(mutex_);
    requests.push_back(request);
    const bool asks = request.method == "POST";
    if (asks && !errors.empty()) {
      const HttpReply reply = errors.front();
      errors.pop_front();
      return reply;
    }
    std::optional<Bytes> body = body_of(database, request);
    if (!body && in_grace) body = body_of(*in_grace, request);
    if (!body) return error(404, "unknown route or epoch");
    if (asks && request.body.size() > queries_max * database.layout().query_bytes()) {
      return error(413, "too many queries");
    }
    const bool partial = request.first_byte > 0 && !ignore_ranges && !request.cut_later;
    if (partial) body->erase(body->begin(), body->begin() + static_cast<long>(request.first_byte));
    if (alter_body) alter_body(*body);
    const int status = partial ? 206 : 200;
    receiver.begin(status, declare_length ? std::optional(body->size()) : std::nullopt);
    const bool hints = request.path.find("/hint?") != std::string::npos;
    send(*body, hints ? std::exchange(break_after, std::nullopt) : std::nullopt, receiver);
    return {.status = status, .content_type = "", .retry_after_s = {}, .problem = ""};
  }

  static HttpReply error(int status, const std::string& detail,
                         std::optional<uint64_t> retry_after_s = {}) {
    return {.status = status,
            .content_type = "application/problem+json",
            .retry_after_s = retry_after_s,
            .problem = nlohmann::json{{"status", status}, {"detail", detail}}.dump()};
  }

 private:
  static std::optional<Bytes> body_of(const ServedDatabase& served, const SeenRequest& request) {
    const std::string epoch = "/v1/epochs/" + served.epoch();
    if (request.path == "/v1/database") return reference_pir::bytes_of(served.manifest_text());
    if (request.path == epoch + "/shards") return served.table();
    if (request.path == epoch + "/queries") return served.respond(request.body);
    const bool packed = served.layout().mode() == Mode::kPacked;
    const std::string hint = epoch + (packed ? "/hint?packs=" : "/hint?shards=");
    if (request.path.starts_with(hint)) return hints_of(served, request.path.substr(hint.size()));
    return std::nullopt;
  }

  // "0-3,17"
  static Bytes hints_of(const ServedDatabase& served, const std::string& parts) {
    Bytes all;
    std::istringstream ranges(parts);
    for (std::string range; std::getline(ranges, range, ',');) {
      const size_t dash = range.find('-');
      const size_t first = std::stoul(range);
      const size_t last = dash == std::string::npos ? first : std::stoul(range.substr(dash + 1));
      for (size_t part = first; part <= last; ++part) {
        const Bytes& hint = served.hints().at(part);
        all.insert(all.end(), hint.begin(), hint.end());
      }
    }
    return all;
  }

  void send(const Bytes& body, std::optional<uint64_t> bytes_max, BodyReceiver& receiver) const {
    const size_t end = std::min<size_t>(body.size(), bytes_max.value_or(body.size()));
    for (size_t at = 0; at < end; at += piece_bytes) {
      receiver.receive(std::span(body).subspan(at, std::min(piece_bytes, end - at)));
    }
    if (end < body.size()) throw ConnectionError("the connection broke");
  }

  mutable std::mutex mutex_;
};

class FakeTransport : public Transport {
 public:
  explicit FakeTransport(FakeServer& server) : server_(server) {}

  HttpReply get(const std::string& path, uint64_t first_byte, BodyReceiver& receiver) override {
    return server_.answer({"GET", path, first_byte, {}, false}, receiver);
  }
  HttpReply post(const std::string& path, std::span<const uint8_t> body,
                 BodyReceiver& receiver) override {
    return server_.answer({"POST", path, 0, Bytes(body.begin(), body.end()), false}, receiver);
  }

 private:
  FakeServer& server_;
};

}  // namespace blindfuse
