#include "client/http_response.h"

#include <blindfuse/errors.h>

#include <algorithm>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

namespace blindfuse {
namespace {

namespace http = boost::beast::http;
using boost::beast::error_code;
using Text = boost::beast::string_view;

constexpr size_t kBufferBytes = kHeadBytesMax;
// "0\r\n\r\n" ends a body in chunks. Beast 1.74 asserts that its bytes come together.
constexpr size_t kLastChunkBytes = 5;

// Passes a response on to its receiver. Without a receiver the response has no body.
class Parser final : public http::basic_parser<false> {
 public:
  Parser(BodyReceiver* receiver, HttpReply& reply) : receiver_(receiver), reply_(reply) {
    reply_ = {};
    header_limit(kHeadBytesMax);
    body_limit(std::numeric_limits<uint64_t>::max());
    skip(receiver_ == nullptr);
  }

 private:
  void on_request_impl(http::verb, Text, Text, int, error_code&) override {}
  void on_response_impl(int status, Text, int, error_code&) override { reply_.status = status; }

  void on_field_impl(http::field name, Text, Text value, error_code&) override {
    if (is_header_done()) return;  // a trailer
    const std::string_view text(value.data(), value.size());
    if (name == http::field::content_type) reply_.content_type = text;
    if (name == http::field::location) reply_.location = text;
    if (name == http::field::retry_after) reply_.retry_after_s = number_in(text);
  }

  void on_header_impl(error_code&) override {
    if (receiver_ == nullptr || !succeeded(reply_.status)) return;
    const auto length = content_length();
    receiver_->begin(reply_.status, length ? std::optional<uint64_t>(*length) : std::nullopt);
  }

  void on_body_init_impl(const boost::optional<uint64_t>&, error_code&) override {}
  void on_chunk_header_impl(uint64_t, Text, error_code&) override {}
  void on_finish_impl(error_code&) override {}
  size_t on_body_impl(Text bytes, error_code& error) override { return take(bytes, error); }
  size_t on_chunk_body_impl(uint64_t, Text bytes, error_code& error) override {
    return take(bytes, error);
  }

  size_t take(Text bytes, error_code& error) {
    if (succeeded(reply_.status)) {
      receiver_->receive({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
    } else {
      const size_t room = kProblemBytesMax - reply_.problem.size();
      reply_.problem.append(bytes.data(), std::min(bytes.size(), room));
      if (reply_.problem.size() == kProblemBytesMax) error = http::error::body_limit;
    }
    return bytes.size();
  }

  BodyReceiver* const receiver_;
  HttpReply& reply_;
};

class Reader {
 public:
  Reader(Connection& connection, Patience& patience, const std::string& at, BodyReceiver* receiver,
         HttpReply& reply)
      : connection_(connection), patience_(patience), at_(at), receiver_(receiver), reply_(reply) {
    parser_.emplace(receiver_, reply_);
  }

  bool read() {
    for (;;) {
      while (outcome_ == Outcome::kNeedsMore && parse_piece()) {
      }
      if (outcome_ != Outcome::kNeedsMore) return outcome_ == Outcome::kWhole;
      const ssize_t got = receive();
      if (got < 0) return false;
      if (got == 0) return read_end();
    }
  }

 private:
  enum class Outcome { kNeedsMore, kWhole, kNotHttp };

  // False if more bytes have to come first.
  bool parse_piece() {
    const size_t waiting = end_ - at_byte_;
    const bool in_head = !parser_->is_header_done();
    if (waiting == 0 || (!in_head && parser_->chunked() && waiting < kLastChunkBytes)) return false;
    if (in_head && !head_limit_) {
      head_limit_.emplace(patience_, patience_.now() + kHeadTimeout, GaveUp::kHeadLate);
    }
    error_code error;
    const size_t used = parser_->put(boost::asio::buffer(&buffer_[at_byte_], waiting), error);
    at_byte_ += used;
    if (in_head) head_bytes_ += used;
    const bool needs_more = error == http::error::need_more;
    if (needs_more) error = {};
    if (error == http::error::header_limit ||
        head_bytes_ + (parser_->is_header_done() ? 0 : end_ - at_byte_) > kHeadBytesMax ||
        (needs_more && end_ - at_byte_ == kBufferBytes)) {
      throw ProtocolError("what answers at " + at_ +
                          " sends too long a head, chunk line or trailer: is it the right server?");
    }
    if (parser_->is_header_done()) head_limit_.reset();
    if (error == http::error::body_limit && !succeeded(reply_.status)) {
      // This is enough of an error's body.
      connection_.close();
      outcome_ = Outcome::kWhole;
    } else if (error == http::error::bad_version) {
      outcome_ = Outcome::kNotHttp;
    } else if (error) {
      fail(error.message());
    } else if (parser_->is_done()) {
      end_response();
    }
    return !needs_more;
  }

  void end_response() {
    if (reply_.status == 101) fail("it switches protocols, which was not asked for");
    if (reply_.status / 100 == 1) {
      parser_.emplace(receiver_, reply_);
      return;
    }
    const bool is_last_byte = at_byte_ == end_;
    if (!is_last_byte || (receiver_ != nullptr && !parser_->keep_alive())) connection_.close();
    outcome_ = Outcome::kWhole;
  }

  ssize_t receive() {
    std::copy(buffer_.begin() + static_cast<ptrdiff_t>(at_byte_),
              buffer_.begin() + static_cast<ptrdiff_t>(end_), buffer_.begin());
    end_ -= at_byte_;
    at_byte_ = 0;
    const ssize_t got = connection_.read(&buffer_[end_], kBufferBytes - end_);
    if (got > 0) end_ += static_cast<size_t>(got);
    return got;
  }

  // The connection ended. That ends the body of some responses, too.
  bool read_end() {
    if (!parser_->is_header_done()) return false;
    error_code error;
    parser_->put_eof(error);
    connection_.close();
    return !error;
  }

  [[noreturn]] void fail(const std::string& why) const {
    throw ProtocolError("what answers at " + at_ + " does not follow HTTP/1.1 (" + why +
                        "): is it the right server, or is a proxy before it at fault?");
  }

  Connection& connection_;
  Patience& patience_;
  const std::string& at_;
  BodyReceiver* const receiver_;
  HttpReply& reply_;
  std::optional<Parser> parser_;  // of the current response
  std::optional<Patience::Limit> head_limit_;
  Outcome outcome_ = Outcome::kNeedsMore;
  size_t head_bytes_ = 0;
  std::vector<char> buffer_ = std::vector<char>(kBufferBytes);
  size_t at_byte_ = 0;  // of the buffer: what is not parsed yet begins here
  size_t end_ = 0;
};

}  // namespace

bool read_response(Connection& connection, Patience& patience, const std::string& at,
                   BodyReceiver& receiver, HttpReply& reply) {
  return Reader(connection, patience, at, &receiver, reply).read();
}

bool read_tunnel_response(Connection& connection, Patience& patience, const std::string& at,
                          HttpReply& reply) {
  return Reader(connection, patience, at, nullptr, reply).read();
}

}  // namespace blindfuse
