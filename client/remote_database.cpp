#include "client/remote_database.h"

#include <blindfuse/errors.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "client/deadline.h"

namespace blindfuse {
namespace {

constexpr size_t kDetailCharsMax = 500;
constexpr const char* kManifestPath = "/v1/database";

// The body of a success: exactly this many bytes, or, for a text, at most this many. Counts the
// bytes that come.
class Body : public BodyReceiver {
 public:
  // A body of `total` bytes is asked for from first_byte on; a server may ignore that and send all
  // of it. The bytes go to `sink`.
  Body(uint64_t& received, const ByteSink& sink, std::string what, uint64_t total,
       uint64_t first_byte = 0, bool is_exact = true)
      : received_(received),
        sink_(sink),
        what_(std::move(what)),
        total_(total),
        first_byte_(first_byte),
        is_exact_(is_exact) {}

  void begin(int status, std::optional<uint64_t> length) override {
    skip_ = status == 200 ? first_byte_ : 0;
    left_ = total_ - (first_byte_ - skip_);
    if (status == 206 && first_byte_ == 0) fail();
    if (length && (is_exact_ ? *length != left_ : *length > left_)) fail();
  }

  void receive(std::span<const uint8_t> bytes) override {
    received_ += bytes.size();
    if (bytes.size() > left_) fail();
    left_ -= bytes.size();
    const size_t skipped = std::min<uint64_t>(skip_, bytes.size());
    skip_ -= skipped;
    if (skipped < bytes.size()) sink_(bytes.subspan(skipped));
  }

  uint64_t bytes_max() const override { return total_; }

  void check_complete() const {
    if (left_ != 0) fail();
  }

 private:
  [[noreturn]] void fail() const {
    const std::string bytes = std::to_string(total_) + " bytes";
    throw ProtocolError(is_exact_
                            ? "the server sent " + what_ + " of another length than the " + bytes +
                                  " that its manifest promises"
                            : what_ + " is longer than " + bytes + ": is that a blindfuse server?");
  }

  uint64_t& received_;
  const ByteSink& sink_;
  const std::string what_;
  const uint64_t total_;
  const uint64_t first_byte_;
  const bool is_exact_;
  uint64_t skip_ = 0;
  uint64_t left_ = 0;
};

// Makes a server's text fit for a terminal.
std::string printable(std::string text) {
  if (text.size() > kDetailCharsMax) text.resize(kDetailCharsMax);
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

// The most telling member of a problem document (RFC 9457), or nothing.
std::string problem_detail(const std::string& body) {
  const nlohmann::json problem = nlohmann::json::parse(body, nullptr, false);
  if (!problem.is_object()) return {};
  for (const char* member : {"detail", "title"}) {
    const auto found = problem.find(member);
    if (found != problem.end() && found->is_string()) return printable(found->get<std::string>());
  }
  return {};
}

std::string epoch_path(const EpochId& epoch, const std::string& rest) {
  return "/v1/epochs/" + epoch + "/" + rest;
}

}  // namespace

RemoteDatabase::RemoteDatabase(std::unique_ptr<Transport> transport, std::string address,
                               std::chrono::seconds timeout, Deadline::Clock clock,
                               ProgressCallback progress)
    : deadline_(timeout, std::move(clock)),
      transport_(std::move(transport)),
      address_(std::move(address)),
      progress_(std::move(progress)) {
  transport_->set_deadline(deadline_);
}

HttpReply RemoteDatabase::get(const std::string& path, uint64_t first_byte,
                              BodyReceiver& receiver) {
  const Deadline::Call call(deadline_);
  for (int repetition = 1;; ++repetition) {
    deadline_.check(address_);
    ++transfers_.requests;
    HttpReply reply = transport_->get(path, first_byte, receiver);
    if (succeeded(reply.status)) return reply;
    try {
      throw_refusal(reply, path == kManifestPath);
    } catch (const ServerBusyError& busy) {
      wait_while_busy(busy, repetition);
    }
  }
}

void RemoteDatabase::wait_while_busy(const ServerBusyError& busy, int repetition) {
  const uint64_t wait_s = busy.retry_after_s().value_or(1);
  if (repetition > kBusyRetriesMax || wait_s > kRetryAfterMaxS ||
      std::chrono::seconds(wait_s) >= deadline_.left()) {
    throw ServerBusyError(busy);
  }
  using std::chrono::steady_clock;
  const auto until = steady_clock::now() + std::chrono::seconds(wait_s);
  do {
    report_progress(progress_, {ClientStage::kWaitingForServer});
    std::this_thread::sleep_for(std::min<steady_clock::duration>(until - steady_clock::now(),
                                                                 std::chrono::milliseconds(100)));
  } while (steady_clock::now() < until);
}

std::string RemoteDatabase::fetch_manifest() {
  const std::string at = "what " + address_ + "/v1/database answers";
  std::string text;
  const ByteSink append = [&](std::span<const uint8_t> bytes) {
    text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  Body body(transfers_.bytes_received, append, at, kManifestBytesMax, 0, /*is_exact=*/false);
  get(kManifestPath, 0, body);
  try {
    parse_manifest(text);
  } catch (const InputError& error) {
    throw ProtocolError(
        at + " is not a manifest that this client understands: " + printable(error.what()));
  }
  return text;
}

std::vector<uint8_t> RemoteDatabase::fetch_table(const EpochId& epoch, uint64_t table_bytes) {
  const Deadline::Call call(deadline_);
  deadline_.allow(table_bytes);
  std::vector<uint8_t> table;
  table.reserve(table_bytes);
  const ByteSink append = [&](std::span<const uint8_t> bytes) {
    table.insert(table.end(), bytes.begin(), bytes.end());
  };
  Body body(transfers_.bytes_received, append, "a table", table_bytes);
  get(epoch_path(epoch, "shards"), 0, body);
  body.check_complete();
  return table;
}

void RemoteDatabase::fetch_hints(const EpochId& epoch, Mode mode, const std::string& parts,
                                 uint64_t first_byte, uint64_t total_bytes, const ByteSink& sink) {
  const bool packed = mode == Mode::kPacked;
  Body body(transfers_.bytes_received, sink, packed ? "masks" : "hints", total_bytes, first_byte);
  const std::string query = (packed ? "hint?packs=" : "hint?shards=") + parts;
  get(epoch_path(epoch, query), first_byte, body);
  body.check_complete();
}

std::vector<uint8_t> RemoteDatabase::ask(const EpochId& epoch, std::span<const uint8_t> queries,
                                         uint64_t response_bytes) {
  const Deadline::Call call(deadline_);
  deadline_.check(address_);
  std::vector<uint8_t> responses;
  const ByteSink append = [&](std::span<const uint8_t> bytes) {
    responses.reserve(response_bytes);
    responses.insert(responses.end(), bytes.begin(), bytes.end());
  };
  Body body(transfers_.bytes_received, append, "responses", response_bytes);
  ++transfers_.requests;
  transfers_.bytes_sent += queries.size();
  const HttpReply reply = transport_->post(epoch_path(epoch, "queries"), queries, body);
  if (!succeeded(reply.status)) throw_refusal(reply, false);
  body.check_complete();
  return responses;
}

// Throws the error that a status means. Only the meaning of 404 and 410 depends on the route.
void RemoteDatabase::throw_refusal(const HttpReply& reply, bool is_manifest) const {
  const int status = reply.status;
  std::string message = address_ + " answered with status " + std::to_string(status);
  if (status / 100 == 3 && !reply.location.empty()) {
    std::string location = reply.location;
    if (location.ends_with(kManifestPath)) location.resize(location.rfind(kManifestPath));
    throw ProtocolError(message + ", a redirect to " + printable(std::move(location)) +
                        ". Redirects are not followed: give the address of the database there");
  }
  if (status < 400 || (is_manifest && (status == 404 || status == 410))) {
    throw ProtocolError("no database at " + address_ + ": it answers with status " +
                        std::to_string(status) + "; check the address and its path");
  }
  if (status == 401 && transport_->sends_api_key()) {
    throw ServerError(401, address_ + " does not know the API key that was sent; check it");
  }
  const std::string detail = problem_detail(reply.problem);
  if (!detail.empty()) message += ": " + detail;
  switch (status) {
    case 401:
      throw ServerError(status, message + "; name the file of yours with --api-key-file");
    case 403:
      throw ServerError(status, message + "; ask the server's operator for access");
    case 404:
    case 410:
      throw EpochGoneError(status, message);
    case 429:
    case 503:
      throw ServerBusyError(message + "; try again later", reply.retry_after_s, status);
    default:
      if (status >= 500) message += "; try again later, or tell the server's operator";
      throw ServerError(status, message);
  }
}

}  // namespace blindfuse
