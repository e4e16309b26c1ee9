#include "client/http_transport.h"

#include <blindfuse/errors.h>
#include <httplib.h>
#include <pthread.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <ctime>
#include <exception>
#include <filesystem>
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

// How a request came to nothing.
struct Failure {
  httplib::Error error = httplib::Error::Unknown;
  bool timed_out = false;
  bool has_head = false;               // of an answer
  long certificate_fault = X509_V_OK;  // as OpenSSL sees it, which does not look at the name
};

std::string certificate_trouble(const std::string& at, const HttpOptions& options, long fault) {
  const std::string certificate = "the certificate of " + at;
  if (fault == X509_V_OK) return certificate + " is for another name; check the address";
  return certificate + " is not trusted (" + X509_verify_cert_error_string(fault) + "); " +
         (options.ca_file.empty() ? "name the file of its authority with --ca-file"
                                  : "is the file named with --ca-file that of its authority?");
}

[[noreturn]] void throw_connection_trouble(const Url& url, const HttpOptions& options,
                                           const Failure& failure) {
  const std::string at = url.text();
  switch (failure.error) {
    case httplib::Error::Connection:
      throw ConnectionTrouble("cannot connect to " + at +
                              ": check the address, and that the server runs");
    case httplib::Error::ConnectionTimeout:
      throw ConnectionTrouble("cannot connect to " + at + ": no answer; check the address");
    case httplib::Error::SSLServerVerification:
      throw ConnectionTrouble(certificate_trouble(at, options, failure.certificate_fault));
    case httplib::Error::SSLConnection:
    case httplib::Error::SSLLoadingCerts:
      throw ConnectionTrouble("no TLS connection to " + at +
                              ": is it an https server, and the certificates' file right?");
    default:
      break;
  }
  if (failure.timed_out) {
    throw ConnectionTrouble("nothing came for " + std::to_string(options.timeout.count()) +
                            " s from " + at + "; try again later");
  }
  if (failure.has_head) {
    throw ConnectionTrouble("the connection to " + at + " broke; try again later");
  }
  throw ConnectionTrouble("the connection to " + at + " closed, and no HTTP answer came: is it " +
                          (url.secure ? "" : "https, or ") +
                          "another service? If not, try again later");
}

}  // namespace

HttpTransport::HttpTransport(Url url, const HttpOptions& options,
                             std::function<bool()> keep_waiting)
    : url_(std::move(url)), options_(options) {
  patience_.keep_waiting = [keep_waiting = std::move(keep_waiting), this] {
    try {
      return !keep_waiting || keep_waiting();
    } catch (...) {
      // Carried past the library, which closes the connection.
      refused_ = std::current_exception();
      return false;
    }
  };
  if (url_.secure) {
    client_ =
        std::make_unique<BoundedHttpClient<httplib::SSLClient>>(url_.host, url_.port, patience_);
  } else {
    client_ =
        std::make_unique<BoundedHttpClient<httplib::ClientImpl>>(url_.host, url_.port, patience_);
  }
  if (!options_.ca_file.empty()) {
    if (!std::filesystem::is_regular_file(options_.ca_file)) {
      throw BadInput("cannot read " + options_.ca_file + ", the file of trusted certificates");
    }
    client_->set_ca_cert_path(options_.ca_file);
  }
  client_->set_keep_alive(true);
  client_->set_tcp_nodelay(true);
  client_->set_url_encode(false);
  client_->set_decompress(false);
  client_->set_connection_timeout(std::min(options_.timeout, std::chrono::seconds(20)));
  client_->set_read_timeout(options_.timeout);
  client_->set_write_timeout(options_.timeout);
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
  HttpReply reply;
  bool cut = false;
  request.set_header("User-Agent", "blindfuse-client");
  if (!options_.api_key.empty()) {
    request.set_header("Authorization", "Bearer " + options_.api_key);
  }
  request.set_header("Accept-Encoding", "identity");
  request.response_handler = [&](const httplib::Response& head) {
    reply.status = head.status;
    reply.content_type = head.get_header_value("Content-Type");
    reply.retry_after_s = number_in(head.get_header_value("Retry-After"));
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
      cut = reply.problem.size() == kProblemBytesMax;
      return !cut;
    }
    try {
      receiver.receive({reinterpret_cast<const uint8_t*>(data), size});
    } catch (...) {
      refused_ = std::current_exception();
    }
    return refused_ == nullptr;
  };
  const SigpipeBlocked blocked;
  patience_.told_to_stop = patience_.timed_out = patience_.head_too_long = false;
  refused_ = nullptr;
  const httplib::Result result = client_->send(request);
  if (refused_) std::rethrow_exception(std::exchange(refused_, nullptr));
  if (patience_.told_to_stop) throw Cancelled();
  if (patience_.head_too_long) {
    throw ProtocolViolation(
        "what answers at " + url_.text() +
        " sends too long a status line or header lines: is it the right server?");
  }
  if (!result && !cut) {
    const auto* const secure = dynamic_cast<const httplib::SSLClient*>(client_.get());
    throw_connection_trouble(
        url_, options_,
        {.error = result.error(),
         .timed_out = patience_.timed_out,
         .has_head = reply.status != 0,
         .certificate_fault = secure != nullptr ? secure->get_openssl_verify_result() : X509_V_OK});
  }
  return reply;
}

}  // namespace blindfuse
