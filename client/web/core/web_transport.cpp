#include "client/web/core/web_transport.h"

#include <blindfuse/errors.h>

#include <algorithm>

namespace blindfuse::web {
namespace {

constexpr uint64_t kPieceBytes = uint64_t{2} << 20;

// Returns 1234 for "bytes 0-99/1234".
std::optional<uint64_t> total_in(std::string_view content_range) {
  const size_t slash = content_range.rfind('/');
  if (slash == std::string_view::npos) return std::nullopt;
  return number_in(content_range.substr(slash + 1));
}

HttpReply head_of(const ExchangeReply& reply) {
  HttpReply head;
  head.status = reply.status;
  head.content_type = reply.content_type;
  head.retry_after_s = number_in(reply.retry_after);
  if (!succeeded(reply.status)) {
    const auto size = static_cast<ptrdiff_t>(std::min<size_t>(reply.body.size(), kProblemBytesMax));
    head.problem.assign(reply.body.begin(), reply.body.begin() + size);
  }
  return head;
}

}  // namespace

ExchangeReply WebTransport::send(ExchangeRequest request, const BodyReceiver& receiver,
                                 uint64_t bytes) const {
  deadline()->check(base_);
  const std::chrono::milliseconds allowed = deadline()->left_for(bytes);
  const bool is_last = deadline()->left() <= allowed;
  request.timeout = std::max(std::chrono::milliseconds(1), allowed);
  request.url = base_ + request.url;
  request.api_key = api_key_;
  request.body_bytes_max = receiver.bytes_max();
  request.problem_bytes_max = kProblemBytesMax;
  ExchangeReply reply = exchange(request);
  if (reply.status != 0) return reply;
  if (reply.error == "TimeoutError") {
    if (is_last) throw ConnectionError(deadline()->trouble(base_));
    throw ConnectionError(base_ + " took longer than " +
                          std::to_string(request.timeout.count() / 1000) +
                          " s for one of its answers; try again later, or allow more with "
                          "--timeout");
  }
  throw ConnectionError("no answer from " + base_ + " (" + reply.error +
                        "): check the address, that this device is online, that the server runs,"
                        " and that it lets pages of this origin ask (blindfuse serve"
                        " --cors-origin)");
}

// The length is that of the bytes that came: a header's may be of a compressed form.
HttpReply WebTransport::hand_over(const ExchangeReply& reply, BodyReceiver& receiver) const {
  if (succeeded(reply.status)) {
    receiver.begin(reply.status, reply.body_bytes);
    receive(reply, receiver);
  }
  return head_of(reply);
}

void WebTransport::receive(const ExchangeReply& reply, BodyReceiver& receiver) const {
  if (reply.body.size() < reply.body_bytes) {
    throw ProtocolError(base_ + " sent " + std::to_string(reply.body_bytes) + " bytes; at most " +
                        std::to_string(reply.body.size()) + " were to come");
  }
  receiver.receive(reply.body);
}

HttpReply WebTransport::get(const std::string& path, uint64_t first_byte, BodyReceiver& receiver) {
  if (path.find("/hint?") != std::string::npos) return get_in_pieces(path, first_byte, receiver);
  const std::string range = first_byte > 0 ? "bytes=" + std::to_string(first_byte) + "-" : "";
  const ExchangeReply reply =
      send({.method = "GET", .url = path, .range = range, .api_key = "", .body = {}}, receiver,
           receiver.bytes_max());
  HttpReply head = hand_over(reply, receiver);
  if (path == "/v1/database" && reply.status == 200) {
    last_.manifest.assign(reply.body.begin(), reply.body.end());
  }
  return head;
}

HttpReply WebTransport::get_in_pieces(const std::string& path, uint64_t first_byte,
                                      BodyReceiver& receiver) {
  for (uint64_t at = first_byte;;) {
    const std::string range =
        "bytes=" + std::to_string(at) + "-" + std::to_string(at + kPieceBytes - 1);
    const bool is_first = at == first_byte;
    const ExchangeReply reply =
        send({.method = "GET", .url = path, .range = range, .api_key = "", .body = {}}, receiver,
             is_first ? receiver.bytes_max() : kPieceBytes);
    if (reply.status != 206) {
      // A server that knows no ranges sends all at once.
      if (is_first) return hand_over(reply, receiver);
      // The answer as a whole breaks here. The download is resumed, and its first piece says why.
      if (reply.status != 200) {
        throw ConnectionError(base_ + " broke off its answer with status " +
                              std::to_string(reply.status) + "; try again later");
      }
      throw ProtocolError(base_ + " answers with ranges at first, and then without");
    }
    const std::optional<uint64_t> total = total_in(reply.content_range);
    if (is_first) {
      const auto length = total ? std::optional(*total - std::min(*total, at)) : std::nullopt;
      receiver.begin(at == 0 ? 200 : 206, length);
    }
    receive(reply, receiver);
    at += reply.body.size();
    if (total ? at >= *total || reply.body.empty() : reply.body.size() < kPieceBytes) {
      return head_of(reply);
    }
  }
}

HttpReply WebTransport::post(const std::string& path, std::span<const uint8_t> body,
                             BodyReceiver& receiver) {
  const ExchangeReply reply =
      send({.method = "POST", .url = path, .range = "", .api_key = "", .body = body}, receiver,
           body.size() + receiver.bytes_max());
  if (last_.keep_bodies) {
    last_.query.assign(body.begin(), body.end());
    last_.response = reply.body;
  }
  return hand_over(reply, receiver);
}

}  // namespace blindfuse::web
