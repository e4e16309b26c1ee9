#include <blindfuse/client.h>

#include <charconv>
#include <limits>
#include <utility>

#include "client/http_transport.h"
#include "client/look_up.h"
#include "client/secret.h"
#include "client/shared_session.h"
#include "src/protocol/manifest.h"

namespace blindfuse {
namespace {

constexpr unsigned kThreadsMax = 1024;
constexpr size_t kDigitsMax = std::numeric_limits<uint64_t>::digits10 + 1;

DatabaseInfo info_of(const DatabaseDescription& database) {
  const Layout& layout = database.layout();
  DatabaseInfo info;
  info.epoch = database.epoch();
  info.is_index = layout.kind == DatabaseKind::kIndex;
  info.key_count = layout.key_count;
  info.value_bytes_max = layout.record.value_bytes;
  info.parameter_set = layout.lwe->name;
  info.mode = mode_name(layout.mode());
  info.row_count = layout.row_count;
  info.shard_count = layout.shard_count;
  info.query_bytes = layout.query_bytes();
  info.response_bytes = layout.response_bytes();
  info.hint_bytes = layout.hint_bytes();
  info.failure_log2 = layout.log2_failure();
  if (layout.batch) info.keys_per_request = layout.batch->keys_per_request;
  info.bucket_count = layout.bucket_count();
  info.keys_at_once = keys_at_once(layout);
  return info;
}

void check(const ClientOptions& options) {
  constexpr std::chrono::seconds kTimeoutMax = std::chrono::hours(24);
  if (options.http.timeout < std::chrono::seconds(1) || options.http.timeout > kTimeoutMax) {
    throw InputError("http.timeout is " + std::to_string(options.http.timeout.count()) +
                     " seconds; 1 to 86400 are possible");
  }
  if (options.thread_count > kThreadsMax) {
    throw InputError("thread_count is " + std::to_string(options.thread_count) + "; at most " +
                     std::to_string(kThreadsMax) + " are possible");
  }
  if (options.mode && options.mode != "hint" && options.mode != "packed") {
    throw InputError("mode is \"" + *options.mode +
                     "\"; it is hint or packed, or is left out for either");
  }
  if (options.server_key && !parse_public_key(*options.server_key)) {
    throw InputError("the server's key (--server-key) is not a public key: 64 digits 0-9 and a-f");
  }
  if (options.http.ca_file && options.http.ca_file->empty()) {
    throw InputError("http.ca_file is empty; leave it out to trust the system's certificates");
  }
  if (options.http.proxy && options.http.proxy->empty()) {
    throw InputError("http.proxy is empty; leave it out to take what the environment names");
  }
  if (options.http.api_key && !is_api_key(*options.http.api_key)) {
    throw InputError(
        "http.api_key is not an API key: letters, digits and -._~+/=, and no line end");
  }
}

std::optional<std::string> value_of(std::vector<Answer> answers) {
  return std::move(values_of(std::move(answers)).front());
}

}  // namespace

Client Client::connect(std::string_view url, ClientOptions options, std::stop_token stop) {
  check(options);
  const Url parsed = parse_url(url);
  const TransportMaker make_transport = [&, http = options.http](auto keep_waiting) {
    return std::make_unique<HttpTransport>(parsed, http, std::move(keep_waiting));
  };
  return Client(std::make_unique<SharedSession>(make_transport, parsed.text(), std::move(options),
                                                std::move(stop)));
}

Client::Client(std::unique_ptr<SharedSession> session) : session_(std::move(session)) {}
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&& other) noexcept {
  std::swap(session_, other.session_);
  return *this;
}
Client::~Client() {
  // After a fork the parent still uses the connection, and another of its threads may have held a
  // lock. The child's copy is left as it is, without being wiped: the child never used it.
  if (session_ && !session_->is_of_this_process()) static_cast<void>(session_.release());
}

SyncResult Client::sync(bool verify, std::stop_token stop) {
  return session_->run(stop, [&](Session& session) { return session.sync(verify); });
}

void Client::prepare(size_t count, std::stop_token stop) {
  session_->run(stop, [&](Session& session) { session.prepare(count); });
}

size_t Client::prepared_count() const { return session_->prepared_count(); }

size_t Client::waiting_count() const { return session_->waiting_count(); }

std::optional<std::string> Client::get(std::string_view key, std::stop_token stop) {
  KeyCopies one(1);
  one.add(key);
  return value_of(session_->look_up(std::move(one), KeyForm::kAny, stop));
}

std::optional<std::string> Client::get(uint64_t i, std::stop_token stop) {
  return value_of(look_up({&i, 1}, std::move(stop)));
}

std::vector<std::optional<std::string>> Client::get_many(std::span<const std::string> keys,
                                                         std::stop_token stop) {
  return values_of(look_up(keys, std::move(stop)));
}

std::vector<Answer> Client::look_up(std::span<const std::string> keys, std::stop_token stop) {
  KeyCopies copies(keys.size());
  for (const std::string& key : keys) copies.add(key);
  return session_->look_up(std::move(copies), KeyForm::kAny, stop);
}

std::vector<Answer> Client::look_up(std::span<const uint64_t> entries, std::stop_token stop) {
  KeyCopies keys(entries.size());
  SecretBuffer<char> digits(kDigitsMax);
  char* const begin = digits.span().data();
  for (const uint64_t i : entries) {
    keys.add({begin, std::to_chars(begin, begin + digits.size(), i).ptr});
  }
  return session_->look_up(std::move(keys), KeyForm::kNumber, stop);
}

SignerStatus Client::signer() const { return session_->signer(); }
TransferStats Client::transfers() const { return session_->transfers(); }

DatabaseInfo Client::database(std::stop_token stop) {
  return session_->run(stop, [](Session& session) { return info_of(session.database()); });
}

}  // namespace blindfuse
