// The routes of a blindfuse server, and what their answers mean: every length checked before memory
// is taken for it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "client/transport.h"
#include "src/manifest.h"

namespace blindfuse {

using ByteSink = std::function<void(std::span<const uint8_t>)>;

// All functions throw ConnectionTrouble; ServerRefusal (EpochGone, ServerBusy) when the server
// answers with an error; and ProtocolViolation when its answer is not of the length, or the kind,
// that the protocol gives it.
class RemoteDatabase {
 public:
  // `address` names the server in messages.
  RemoteDatabase(std::unique_ptr<Transport> transport, std::string address)
      : transport_(std::move(transport)), address_(std::move(address)) {}

  const std::string& address() const { return address_; }

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
  [[noreturn]] void throw_refusal(const HttpReply& reply) const;

  std::unique_ptr<Transport> transport_;
  std::string address_;
};

}  // namespace blindfuse
