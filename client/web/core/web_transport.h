// The client library's transport in a browser, which makes the requests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/transport.h"
#include "client/url.h"
#include "client/web/core/host.h"

namespace blindfuse::web {

// The last bytes that a client received, for inspection.
struct LastExchange {
  std::string manifest;  // the answer of /v1/database, good or bad, until it is taken
  bool keep_bodies = false;
  std::vector<uint8_t> query;  // while keep_bodies is set
  std::vector<uint8_t> response;
};

// A browser returns an answer only after all of it has come. So hints are requested in pieces:
// progress can be reported after each, and an interruption costs one piece. Only the time of a
// whole request can be bounded.
class WebTransport : public Transport {
 public:
  // `last` outlives the transport.
  WebTransport(const Url& url, std::string api_key, LastExchange& last)
      : base_(url.text()), api_key_(std::move(api_key)), last_(last) {}

  HttpReply get(const std::string& path, uint64_t first_byte, BodyReceiver& receiver) override;
  HttpReply post(const std::string& path, std::span<const uint8_t> body,
                 BodyReceiver& receiver) override;
  bool sends_api_key() const override { return !api_key_.empty(); }

 private:
  // `bytes` is the number that the request can move; the deadline gives time for them.
  ExchangeReply send(ExchangeRequest request, const BodyReceiver& receiver, uint64_t bytes) const;
  HttpReply hand_over(const ExchangeReply& reply, BodyReceiver& receiver) const;
  void receive(const ExchangeReply& reply, BodyReceiver& receiver) const;
  HttpReply get_in_pieces(const std::string& path, uint64_t first_byte, BodyReceiver& receiver);

  const std::string base_;
  const std::string api_key_;
  LastExchange& last_;
};

}  // namespace blindfuse::web
