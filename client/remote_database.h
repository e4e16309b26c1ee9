// The routes of a blindfuse server, and the meaning of their answers. Every length is checked
// before memory is allocated for it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <blindfuse/client_options.h>
#include <blindfuse/errors.h>
#include <blindfuse/progress.h>
#include <blindfuse/results.h>

#include "client/deadline.h"
#include "client/transport.h"
#include "src/protocol/manifest.h"

namespace blindfuse {

// A request that finds the server busy is repeated this often, and waits at most this long before.
inline constexpr int kBusyRetriesMax = 5;
inline constexpr uint64_t kRetryAfterMaxS = 60;

using ByteSink = std::function<void(std::span<const uint8_t>)>;

// All functions throw ConnectionError, also if the deadline of the call has passed. They throw
// ServerError (EpochGoneError, ServerBusyError) if the server answers with an error, and
// ProtocolError if its answer has another length or kind than the protocol defines. While the
// server is busy, the functions that fetch wait and repeat their requests.
class RemoteDatabase {
 public:
  // `address` names the server in messages. `timeout` is that of ClientOptions, by this clock.
  // `progress` hears of waits for a busy server, and can end them.
  RemoteDatabase(std::unique_ptr<Transport> transport, std::string address,
                 std::chrono::seconds timeout = HttpOptions().timeout,
                 Deadline::Clock clock = std::chrono::steady_clock::now,
                 ProgressCallback progress = {});
  RemoteDatabase(const RemoteDatabase&) = delete;
  RemoteDatabase& operator=(const RemoteDatabase&) = delete;

  const std::string& address() const { return address_; }
  // The current call, of which all requests here are part. Outside of one, each function is a call
  // of its own.
  Deadline& deadline() { return deadline_; }

  void close_connection() { transport_->close_connection(); }

  const TransferStats& transfers() const { return transfers_; }

  // The manifest's text, of at most kManifestBytesMax bytes. It is a valid manifest.
  std::string fetch_manifest();

  // The tables of shards and packs, table_bytes in all.
  std::vector<uint8_t> fetch_table(const EpochId& epoch, uint64_t table_bytes);

  // The hints of the shards, or the masks of the packs, named as in "0-3,17", one after another,
  // total_bytes in all. The bytes from first_byte on go to sink.
  void fetch_hints(const EpochId& epoch, Mode mode, const std::string& parts, uint64_t first_byte,
                   uint64_t total_bytes, const ByteSink& sink);

  // The responses to one or more queries, one after another, response_bytes in all.
  std::vector<uint8_t> ask(const EpochId& epoch, std::span<const uint8_t> queries,
                           uint64_t response_bytes);

  // Waits as long as a busy server asks for, before the request is repeated for the
  // `repetition`-th time. Throws `busy` if that is too often, too long, or longer than the call has
  // left; and CancelledError.
  void wait_while_busy(const ServerBusyError& busy, int repetition);

 private:
  HttpReply get(const std::string& path, uint64_t first_byte, BodyReceiver& receiver);
  [[noreturn]] void throw_refusal(const HttpReply& reply, bool is_manifest) const;

  Deadline deadline_;
  std::unique_ptr<Transport> transport_;
  std::string address_;
  ProgressCallback progress_;
  TransferStats transfers_;
};

}  // namespace blindfuse
