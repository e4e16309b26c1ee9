// The routes of a blindfuse server, and what their answers mean: every length checked before memory
// is taken for it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <blindfuse/client_options.h>

#include "client/deadline.h"
#include "client/transport.h"
#include "src/protocol/manifest.h"

namespace blindfuse {

using ByteSink = std::function<void(std::span<const uint8_t>)>;

// All functions throw ConnectionError, also when the deadline of the call has passed;
// ServerError (EpochGoneError, ServerBusyError) when the server answers with an error; and
// ProtocolError when its answer is not of the length, or the kind, that the protocol gives it.
class RemoteDatabase {
 public:
  // `address` names the server in messages. `timeout` is that of ClientOptions, by this clock.
  RemoteDatabase(std::unique_ptr<Transport> transport, std::string address,
                 std::chrono::seconds timeout = HttpOptions().timeout,
                 Deadline::Clock clock = std::chrono::steady_clock::now);
  RemoteDatabase(const RemoteDatabase&) = delete;
  RemoteDatabase& operator=(const RemoteDatabase&) = delete;

  const std::string& address() const { return address_; }
  // Of the call under way, which all that is asked here is part of; outside of one, each function
  // is a call of its own.
  Deadline& deadline() { return deadline_; }

  // The manifest's text, of at most kManifestBytesMax bytes; it parses.
  std::string fetch_manifest();

  // The tables of shards and packs, table_bytes in all.
  std::vector<uint8_t> fetch_table(const EpochId& epoch, uint64_t table_bytes);

  // The hints of the shards, or the masks of the packs, named as in "0-3,17", one after another,
  // total_bytes in all: those from first_byte on go to sink.
  void fetch_hints(const EpochId& epoch, Mode mode, const std::string& parts, uint64_t first_byte,
                   uint64_t total_bytes, const ByteSink& sink);

  // The responses to one or more queries, one after another, response_bytes in all.
  std::vector<uint8_t> ask(const EpochId& epoch, std::span<const uint8_t> queries,
                           uint64_t response_bytes);

 private:
  HttpReply get(const std::string& path, uint64_t first_byte, BodyReceiver& receiver);
  [[noreturn]] void throw_refusal(const HttpReply& reply) const;

  Deadline deadline_;
  std::unique_ptr<Transport> transport_;
  std::string address_;
};

}  // namespace blindfuse
