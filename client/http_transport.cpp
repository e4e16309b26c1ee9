#include "client/http_transport.h"

#include <blindfuse/errors.h>
#include <httplib.h>
#include <pthread.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <csignal>
#include <ctime>
#include <exception>
#include <string_view>
#include <utility>

#include "client/bounded_http.h"

namespace blindfuse {
namespace {

// Keeps a server that hangs up from killing the program: writing to its socket raises SIGPIPE,
// which a library must not turn off for the whole process.
class SigpipeBlocked {
 public:
  SigpipeBlocked() {
    sigemptyset(&sigpipe_);
    sigaddset(&sigpipe_, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &sigpipe_, &before_);
  }
  ~SigpipeBlocked() {
    const timespec now{};
    if (!was_pending_) sigtimedwait(&sigpipe_, nullptr, &now);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  SigpipeBlocked(const SigpipeBlocked&) = delete;
  SigpipeBlocked& operator=(const SigpipeBlocked&) = delete;

 private:
  sigset_t sigpipe_{};
  sigset_t before_{};
  bool was_pending_ = false;
};

std::optional<uint64_t> number_in(const std::string& text) {
  uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

// Whether one of a header's words, as in "keep-alive, Close", is this one, in any case.
bool has_word(std::string_view words, std::string_view wanted) {
  const auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
  while (!words.empty()) {
    const size_t comma = std::min(words.find(','), words.size());
    std::string_view word = words.substr(0, comma);
    words.remove_prefix(std::min(comma + 1, words.size()));
    word.remove_prefix(std::min(word.find_first_not_of(" \t"), word.size()));
    word = word.substr(0, word.find_last_not_of(" \t") + 1);
    if (std::ranges::equal(word, wanted, same)) return true;
  }
  return false;
}

// The server closes the connection, or may at any moment.
bool is_last_answer(const httplib::Response& head) {
  const auto [first, last] = head.headers.equal_range("Connection");
  const auto says = [&](std::string_view word) {
    return std::any_of(first, last, [&](const auto& line) { return has_word(line.second, word); });
  };
  return says("close") || (head.version != "HTTP/1.1" && !says("keep-alive"));
}

std::string certificate_trouble(const std::string& at, const HttpOptions& options, long fault) {
  const std::string certificate = "the certificate of " + at;
  if (fault == X509_V_ERR_HOSTNAME_MISMATCH || fault == X509_V_ERR_IP_ADDRESS_MISMATCH) {
    return certificate + " is for another name; check the address";
  }
  return certificate + " is not trusted (" + X509_verify_cert_error_string(fault) + "); " +
         (options.ca_file ? "is the file named with --ca-file that of its authority?"
                          : "name the file of its authority with --ca-file");
}

// As RFC 9110 has it: without the port where it is that of the scheme.
std::string host_header(const Url& url) {
  const std::string host =
      url.host.find(':') == std::string::npos ? url.host : "[" + url.host + "]";
  return url.port == (url.secure ? 443 : 80) ? host : host + ":" + std::to_string(url.port);
}

}  // namespace

// What came of a request.
struct HttpTransport::Answer {
  HttpReply reply;
  httplib::Error error = httplib::Error::Success;
  bool is_cut = false;  // by this client, which wants no more of the body of an error
};

HttpTransport::HttpTransport(Url url, const HttpOptions& options,
                             std::function<bool()> keep_waiting)
    : url_(std::move(url)),
      options_(options),
      own_deadline_(options.timeout),
      patience_([keep_waiting = std::move(keep_waiting), this] {
        try {
          return !keep_waiting || keep_waiting();
        } catch (...) {
          // Carried past the library, which closes the connection.
          refused_ = std::current_exception();
          return false;
        }
      }),
      // A file that was named has to be there, even if this server needs none.
      tls_(url_.secure || options_.ca_file
               ? std::make_unique<TlsContext>(options_.ca_file.value_or(""))
               : nullptr),
      client_(std::make_unique<BoundedHttpClient>(
          url_.host, url_.port, url_.secure ? tls_.get() : nullptr, options_.timeout, patience_)) {
  client_->set_keep_alive(true);
  client_->set_url_encode(false);
  client_->set_decompress(false);
}

HttpTransport::~HttpTransport() {
  const SigpipeBlocked blocked;  // closing a TLS connection writes to it
  client_.reset();
}

HttpReply HttpTransport::get(const std::string& path, uint64_t first_byte, BodyReceiver& receiver) {
  httplib::Request request;
  request.method = "GET";
  request.path = url_.prefix + path;
  if (first_byte > 0) request.set_header("Range", "bytes=" + std::to_string(first_byte) + "-");
  return send(request, receiver);
}

HttpReply HttpTransport::post(const std::string& path, std::span<const uint8_t> body,
                              BodyReceiver& receiver) {
  httplib::Request request;
  request.method = "POST";
  request.path = url_.prefix + path;
  request.body.assign(reinterpret_cast<const char*>(body.data()), body.size());
  request.set_header("Content-Type", "application/octet-stream");
  return send(request, receiver);
}

HttpReply HttpTransport::send(httplib::Request& request, BodyReceiver& receiver) {
  request.set_header("Host", host_header(url_));
  request.set_header("User-Agent", "blindfuse-client");
  if (options_.api_key) request.set_header("Authorization", "Bearer " + *options_.api_key);
  request.set_header("Accept-Encoding", "identity");
  Deadline& deadline = this->deadline() != nullptr ? *this->deadline() : own_deadline_;
  const Deadline::Call call(deadline);
  patience_.begin(deadline);
  const SigpipeBlocked blocked;
  for (;;) {
    Answer answer;
    if (send_once(request, receiver, answer)) return std::move(answer.reply);
    const bool is_lost = patience_.gave_up() == GaveUp::kNot && client_->lost_kept_connection();
    if (is_lost && request.method == "GET") continue;  // its connection will be a new one
    if (is_lost) {
      throw KeptConnectionClosed("the connection to " + url_.text() +
                                 " closed before an answer came; try again");
    }
    throw_trouble(answer);
  }
}

bool HttpTransport::send_once(httplib::Request& request, BodyReceiver& receiver, Answer& answer) {
  HttpReply& reply = answer.reply;
  request.response_handler = [&](const httplib::Response& head) {
    reply.status = head.status;
    if (head.status != 200 && head.status != 206) return true;
    try {
      receiver.begin(head.status, number_in(head.get_header_value("Content-Length")));
    } catch (...) {
      refused_ = std::current_exception();
    }
    return refused_ == nullptr;
  };
  request.content_receiver = [&](const char* data, size_t size, uint64_t, uint64_t) {
    if (reply.status != 200 && reply.status != 206) {
      reply.problem.append(data, std::min<size_t>(size, kProblemBytesMax - reply.problem.size()));
      answer.is_cut = reply.problem.size() == kProblemBytesMax;
      return !answer.is_cut;
    }
    try {
      receiver.receive({reinterpret_cast<const uint8_t*>(data), size});
    } catch (...) {
      refused_ = std::current_exception();
    }
    return refused_ == nullptr;
  };
  refused_ = nullptr;
  client_->begin_request();
  httplib::Response head;
  const bool done = client_->send(request, head, answer.error);
  if (refused_) std::rethrow_exception(std::exchange(refused_, nullptr));
  if (!done && !answer.is_cut) return false;
  if (is_last_answer(head)) client_->close_connection();
  reply.status = head.status;  // the library calls no handler where there can be no body
  reply.content_type = head.get_header_value("Content-Type");
  reply.retry_after_s = number_in(head.get_header_value("Retry-After"));
  return true;
}

void HttpTransport::throw_trouble(const Answer& answer) const {
  const std::string at = url_.text();
  switch (patience_.gave_up()) {
    case GaveUp::kStopped:
      throw CancelledError();
    case GaveUp::kCallOver:
      throw ConnectionError((deadline() != nullptr ? *deadline() : own_deadline_).trouble(at));
    case GaveUp::kHeadLate:
      throw ConnectionError("the head of an answer from " + at + " began, and was not whole in " +
                            std::to_string(kHeadTimeout.count()) + " s; try again later");
    case GaveUp::kHeadTooLong:
      throw ProtocolError("what answers at " + at +
                          " sends too long a status line or header lines: is it the right "
                          "server?");
    case GaveUp::kNothingCame:
    case GaveUp::kNot:
      break;
  }
  switch (answer.error) {
    case httplib::Error::Connection:
      throw ConnectionError("cannot connect to " + at +
                            ": check the address, and that the server runs");
    case httplib::Error::ConnectionTimeout:
      throw ConnectionError("cannot connect to " + at + ": no answer; check the address");
    case httplib::Error::SSLServerVerification:
      throw ConnectionError(certificate_trouble(at, options_, client_->verify_result()));
    case httplib::Error::SSLConnection:
      throw ConnectionError("no TLS connection to " + at + ": is it an https server?");
    default:
      break;
  }
  if (patience_.gave_up() == GaveUp::kNothingCame) {
    throw ConnectionError("nothing came for " + std::to_string(options_.timeout.count()) +
                          " s from " + at + "; try again later, or wait longer with --timeout");
  }
  if (answer.reply.status != 0) {
    throw ConnectionError("the connection to " + at + " broke; try again later");
  }
  throw ConnectionError("the connection to " + at + " closed, and no HTTP answer came: is it " +
                        (url_.secure ? "" : "https, or ") +
                        "another service? If not, try again later");
}

}  // namespace blindfuse
