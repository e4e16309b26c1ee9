// The module's exports: one client, asked in JSON by worker.js.
//
//   blindfuse_call(request, size, keys, keys_size) -> whether it succeeded; the answer is then
//   blindfuse_reply(), JSON, and blindfuse_bytes(), the bytes that it speaks of, until
//   blindfuse_forget(), which wipes both. Requests, by "op":
//
//   connect    url, apiKey, mode, serverKey, allowRollback, folder, timeoutSeconds, hintBytesMax,
//              transferBytesMax
//   sync       verify
//   beginLookUp  keys (the length of each; their bytes are `keys`), inspect: checks all keys, and
//                takes the first ones, keys_at_once() of them. Gives "taken", and "queriesLeft"
//   ask          count: up to this many queries. Gives "queriesLeft", which may be more than before
//   endLookUp    once none is left: decodes the answers
//   dropLookUp   instead, at any time
//
//   verdict    signer, signature, verdict ("right", "wrong" or "unable"), and as `keys` the
//   message:
//              what the browser says of that signature
//   mergeSigners  as `keys` what is kept of signers elsewhere, or nothing: gives as bytes what both
//              have seen (client/manifest_guard.h)
//
// An answer with "unchecked", and the message as bytes, is none yet: the browser is to check that
// signature, and the same is to be asked again.
//
// Queries are prepared by several workers, each with a module of its own (preparation.h):
//
//   beginPrepare  count; gives "panels", and as bytes what the others need; no panels: all is done,
//                 and nothing is to be added or ended
//   prepareHere   first, last: these panels, by this module
//   prepareThere  first, last, and as `keys` those bytes: by a module that need not be connected;
//                 gives the products as bytes
//   addPrepared   first, last, and as `keys` those products
//   endPrepare
//   dropPrepare   instead, at any time
//
// Every answer has "info", "signer" (SignerStatus) and "prepared"; a failed one "error"
// (error_report.h). "values" has the length of each value, -1 where there is none; after them, when
// inspecting, "sizes" are those of the query and the response.
#include <emscripten/emscripten.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/look_up.h"
#include "client/secret.h"
#include "client/session.h"
#include "client/url.h"
#include "client/web/core/error_report.h"
#include "client/web/core/preparation.h"
#include "client/web/core/web_transport.h"
#include "client/web/crypto/signature_verdicts.h"
#include "src/base/errors.h"
#include "src/base/hex.h"
#include "src/base/release_memory.h"

namespace blindfuse::web {
namespace {

using nlohmann::json;
using std::chrono::steady_clock;

// A page spends time on each message.
constexpr std::chrono::milliseconds kProgressInterval{50};

// The answer when there is no memory left to say more.
constexpr std::string_view kNoMemory =
    R"({"error":{"code":"machine","message":"the browser gives no more memory; close other pages"}})";

struct Answered {
  std::string text;
  std::string_view reply;
  std::vector<uint8_t> bytes;

  void forget() {
    blindfuse::wipe_memory(bytes.data(), bytes.size());
    blindfuse::wipe_memory(text.data(), text.size());
    *this = {};
  }
};

// The state of the one client that a module has.
class Core {
 public:
  json call(const json& request, std::span<const uint8_t> keys, std::vector<uint8_t>& bytes) {
    const auto op = request.at("op").get<std::string>();
    if (op == "connect") return connect(request);
    if (op == "prepareThere") {
      bytes = multiply_elsewhere(keys, request.at("first"), request.at("last"));
      return json::object();
    }
    if (op == "verdict") {
      note_verdict(request, keys);
      return json::object();
    }
    if (!session_) throw std::logic_error("connect comes first");
    if (op == "sync") return sync(request.at("verify"));
    if (op == "mergeSigners") {
      merge_signers(keys, bytes);
      return json::object();
    }
    if (op == "beginLookUp") return begin_look_up(request, keys);
    if (op == "endLookUp") return end_look_up(bytes);
    if (op == "dropLookUp") {
      begun_.reset();
      return json::object();
    }
    if (op == "ask") {
      if (!begun_) throw std::logic_error("beginLookUp comes first");
      return {{"queriesLeft", begun_->look_up.ask(request.at("count"))}};
    }
    if (op == "beginPrepare") return begin_prepare(request.at("count"), bytes);
    if (op == "dropPrepare") {
      preparation_.reset();
      return json::object();
    }
    if (!preparation_) throw std::logic_error("beginPrepare comes first");
    if (op == "prepareHere") {
      preparation_->multiply_here(request.at("first"), request.at("last"));
      return json::object();
    }
    if (op == "addPrepared") {
      preparation_->add(request.at("first"), request.at("last"), keys);
      return json::object();
    }
    if (op == "endPrepare") return end_prepare();
    throw std::logic_error("no such request: " + op);
  }

  // Describes the last manifest that could be read.
  json info() {
    if (!session_) return nullptr;
    if (!last_.manifest.empty()) {
      const std::string text = std::exchange(last_.manifest, {});
      try {
        info_ = info_of(parse_manifest(text));
      } catch (const std::exception&) {
        // The session says what is wrong with it.
      }
    }
    return info_;
  }

  json signer() const {
    if (!session_) return nullptr;
    const auto status = session_->signer();
    return {{"key", status->signer},
            {"sequence", status->sequence},
            {"time", status->time},
            {"isChecked", status->is_checked},
            {"warning", in_our_words(status->warning)}};
  }

  // A manifest that was refused is not reported.
  void forget_manifest() { last_.manifest.clear(); }

  size_t prepared_count() const { return session_ ? session_->prepared_count() : 0; }

 private:
  // A look-up that has begun, and its keys.
  struct Begun {
    Begun(Session& session, KeyCopies all, size_t taken)
        : keys(std::move(all)), views(taken), look_up(session, views_of_keys()) {}
    std::span<const std::string_view> views_of_keys() {
      std::copy_n(keys.span().begin(), views.size(), views.span().begin());
      return views.span();
    }

    const KeyCopies keys;
    SecretBuffer<std::string_view> views;
    LookUp look_up;
  };

  static json info_of(const ParsedManifest& parsed) {
    const Layout& layout = parsed.manifest.layout;
    return {{"epoch", parsed.epoch},
            {"kind", layout.kind == DatabaseKind::kKeyword ? "keyword" : "index"},
            {"keyCount", layout.key_count},
            {"rowCount", layout.row_count},
            {"shardCount", layout.shard_count},
            {"keysPerRequest", layout.batch ? layout.batch->keys_per_request : 1},
            {"bucketCount", layout.bucket_count()},
            {"recordBytes", layout.record_bytes()},
            {"valueBytesMax", layout.record.value_bytes},
            {"queryBytes", layout.query_bytes()},
            {"responseBytes", layout.response_bytes()},
            {"hintBytes", layout.hint_bytes()},
            {"databaseBytes", layout.matrix_bytes()},
            {"mode", mode_name(layout.mode())},
            {"parameterSet", layout.lwe->name}};
  }

  json connect(const json& request) {
    const Url url = parse_url(request.at("url").get<std::string>());
    ClientOptions options;
    options.cache_folder = request.at("folder").get<std::string>();
    options.thread_count = 1;
    const auto given = [&](const char* name) {
      const json& value = request.at(name);
      return value.is_null() ? std::nullopt : std::optional(value.get<std::string>());
    };
    options.mode = given("mode");
    options.server_key = given("serverKey");
    options.allow_rollback = request.at("allowRollback").get<bool>();
    options.http.timeout = std::chrono::seconds(request.at("timeoutSeconds").get<int64_t>());
    options.hint_bytes_max = request.at("hintBytesMax");
    options.transfer_bytes_max = request.at("transferBytesMax");
    options.progress = [this](const ClientProgress& progress) {
      tell(progress);
      return true;
    };
    begun_.reset();
    auto transport = std::make_unique<WebTransport>(url, given("apiKey").value_or(""), last_);
    session_ = std::make_unique<Session>(std::move(transport), url.text(), std::move(options),
                                         fill_from_system, HintFiles::kInMemory);
    return json::object();
  }

  static void note_verdict(const json& request, std::span<const uint8_t> message) {
    UncheckedSignature of;
    const auto signer = decode_hex(request.at("signer").get<std::string>()).value();
    const auto signature = decode_hex(request.at("signature").get<std::string>()).value();
    invariant(signer.size() == of.signer.size() && signature.size() == of.signature.size(),
              "a verdict is of what was asked");
    std::copy(signer.begin(), signer.end(), of.signer.begin());
    std::copy(signature.begin(), signature.end(), of.signature.begin());
    of.message.assign(message.begin(), message.end());
    const auto verdict = request.at("verdict").get<std::string>();
    web::note_verdict(std::move(of), verdict == "right"   ? Verdict::kRight
                                     : verdict == "wrong" ? Verdict::kWrong
                                                          : Verdict::kUnable);
  }

  void merge_signers(std::span<const uint8_t> elsewhere, std::vector<uint8_t>& bytes) {
    SeenSigners all;
    session_->guard().seen().update([&](SeenSigners& seen) {
      if (!elsewhere.empty()) {
        seen.merge(parse_seen_signers(
            {reinterpret_cast<const char*>(elsewhere.data()), elsewhere.size()}));
      }
      all = seen;
    });
    const std::string text = serialize_seen_signers(all);
    bytes.assign(text.begin(), text.end());
  }

  json sync(bool verify) {
    const SyncResult result = session_->sync(verify);
    return {{"epoch", result.epoch},
            {"shardCount", result.shard_count},
            {"partCount", result.part_count},
            {"shardsFetched", result.shards_fetched},
            {"bytesFetched", result.bytes_fetched},
            {"hintBytes", result.hint_bytes},
            {"seconds", result.seconds}};
  }

  json begin_prepare(size_t count, std::vector<uint8_t>& bytes) {
    preparation_.reset();
    const Manifest& manifest = session_->database().manifest();
    if (manifest.layout.mode() == Mode::kPacked) {
      // This takes a few tens of milliseconds, less than handing out parts of it would.
      session_->prepare(count);
      return {{"panels", 0}};
    }
    begun_at_ = steady_clock::now();
    const LweParams& lwe = *manifest.layout.lwe;
    preparation_.emplace(PublicMatrix(manifest.seed, lwe.dimension), manifest.layout.row_count,
                         lwe.error_max, count);
    bytes = preparation_->for_others();
    return {{"panels", preparation_->panel_count()}};
  }

  json end_prepare() {
    std::vector<PreparedQuery> queries = std::move(*preparation_).take_queries();
    preparation_.reset();
    const std::chrono::duration<double> took = steady_clock::now() - begun_at_;
    const auto count = static_cast<double>(std::max<size_t>(queries.size(), 1));
    session_->add_prepared(std::move(queries), took.count() / count);
    return json::object();
  }

  static KeyCopies keys_of(const json& request, std::span<const uint8_t> bytes_of_keys) {
    const auto sizes = request.at("keys").get<std::vector<size_t>>();
    KeyCopies keys(sizes.size());
    for (const size_t size : sizes) {
      invariant(size <= bytes_of_keys.size(), "the keys are there");
      const auto key = bytes_of_keys.first(size);
      keys.add({reinterpret_cast<const char*>(key.data()), key.size()});
      bytes_of_keys = bytes_of_keys.subspan(size);
    }
    return keys;
  }

  json begin_look_up(const json& request, std::span<const uint8_t> bytes_of_keys) {
    begun_.reset();
    KeyCopies keys = keys_of(request, bytes_of_keys);
    const DatabaseDescription& database = session_->database();
    for (const std::string& key : keys.span()) database.check(key);
    const size_t taken = static_cast<size_t>(
        std::min<uint64_t>(keys.span().size(), keys_at_once(database.layout())));
    last_.keep_bodies = request.at("inspect");
    begun_ = std::make_unique<Begun>(*session_, std::move(keys), taken);
    return {{"taken", taken}, {"queriesLeft", begun_->look_up.queries_left()}};
  }

  json end_look_up(std::vector<uint8_t>& bytes) {
    const std::unique_ptr<Begun> ended = std::move(begun_);  // wiped in any case
    if (!ended) throw std::logic_error("beginLookUp comes first");
    const std::vector<Answer> answers = std::move(ended->look_up).decode();
    size_t bytes_max = last_.query.size() + last_.response.size();
    for (const Answer& answer : answers) bytes_max += answer.value ? answer.value->size() : 0;
    bytes.reserve(bytes_max);  // growing would leave copies in memory
    auto values = json::array();
    auto costs = json::array();
    for (const Answer& answer : answers) {
      values.push_back(answer.value ? static_cast<int64_t>(answer.value->size()) : -1);
      if (answer.value) bytes.insert(bytes.end(), answer.value->begin(), answer.value->end());
      costs.push_back({{"queryBytes", answer.query_bytes},
                       {"responseBytes", answer.response_bytes},
                       {"prepareSeconds", answer.prepare_seconds},
                       {"serverSeconds", answer.server_seconds},
                       {"decodeSeconds", answer.decode_seconds},
                       {"totalSeconds", answer.total_seconds},
                       {"asked", answer.asked}});
    }
    json result = {{"values", std::move(values)}, {"costs", std::move(costs)}};
    if (last_.keep_bodies) {
      bytes.insert(bytes.end(), last_.query.begin(), last_.query.end());
      bytes.insert(bytes.end(), last_.response.begin(), last_.response.end());
      result["sizes"] = {last_.query.size(), last_.response.size()};
      release_memory(last_.query);
      release_memory(last_.response);
    }
    return result;
  }

  void tell(const ClientProgress& progress) {
    const auto now = steady_clock::now();
    const bool is_news = progress.stage != told_stage_ || progress.done == progress.total;
    if (!is_news && now - told_at_ < kProgressInterval) return;
    told_stage_ = progress.stage;
    told_at_ = now;
    tell_progress(progress);
  }

  LastExchange last_;  // outlives the client's transport
  json info_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<Begun> begun_;
  std::optional<Preparation> preparation_;
  steady_clock::time_point begun_at_;
  ClientStage told_stage_ = ClientStage::kWaitingForLock;
  steady_clock::time_point told_at_;
};

Core& core() {
  static Core the_core;
  return the_core;
}

Answered& answered() {
  static Answered the_answer;
  return the_answer;
}

}  // namespace
}  // namespace blindfuse::web

extern "C" {

EMSCRIPTEN_KEEPALIVE int blindfuse_call(const char* request, size_t size, const uint8_t* keys,
                                        size_t keys_size) {
  using namespace blindfuse::web;
  Answered& answer = answered();
  answer.forget();
  try {
    nlohmann::json reply;
    bool succeeded = true;
    try {
      reply = core().call(nlohmann::json::parse(std::string_view(request, size)), {keys, keys_size},
                          answer.bytes);
    } catch (const UncheckedSignature& unchecked) {
      answer.forget();
      core().forget_manifest();
      answer.bytes.assign(unchecked.message.begin(), unchecked.message.end());
      reply = {{"unchecked",
                {{"signer", blindfuse::encode_hex(unchecked.signer)},
                 {"signature", blindfuse::encode_hex(unchecked.signature)}}}};
    } catch (...) {
      succeeded = false;
      answer.forget();
      reply = {{"error", error_report(std::current_exception())}};
      if (reply["error"]["code"] == "signature") core().forget_manifest();
    }
    reply["info"] = core().info();
    reply["signer"] = core().signer();
    reply["prepared"] = core().prepared_count();
    answer.text = reply.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    answer.reply = answer.text;
    return succeeded ? 1 : 0;
  } catch (...) {
    answer.forget();
    answer.reply = kNoMemory;
    return 0;
  }
}

EMSCRIPTEN_KEEPALIVE void blindfuse_forget() { blindfuse::web::answered().forget(); }
EMSCRIPTEN_KEEPALIVE const char* blindfuse_reply() {
  return blindfuse::web::answered().reply.data();
}
EMSCRIPTEN_KEEPALIVE size_t blindfuse_reply_size() {
  return blindfuse::web::answered().reply.size();
}
EMSCRIPTEN_KEEPALIVE const uint8_t* blindfuse_bytes() {
  return blindfuse::web::answered().bytes.data();
}
EMSCRIPTEN_KEEPALIVE size_t blindfuse_bytes_size() {
  return blindfuse::web::answered().bytes.size();
}
}
