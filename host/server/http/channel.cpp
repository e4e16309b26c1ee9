#include "host/server/http/channel.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>
#include <limits>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "host/server/http/request_head.h"
#include "host/server/http/response.h"
#include "src/base/errors.h"
#include "src/program/log.h"

namespace blindfuse::http {

namespace {

class PlainChannel final : public Channel {
 public:
  explicit PlainChannel(FileDescriptor socket) : socket_(std::move(socket)) {}

  int fd() const override { return socket_.get(); }

  Result read(std::span<char> into) override {
    for (;;) {
      const ssize_t got = recv(fd(), into.data(), into.size(), 0);
      if (got > 0) return {Status::kDone, static_cast<size_t>(got)};
      if (got == 0) return {Status::kClosed};
      if (errno == EAGAIN || errno == EWOULDBLOCK) return {Status::kWantRead};
      if (errno != EINTR) return {Status::kClosed};
    }
  }

  Result write(std::string_view bytes) override {
    for (;;) {
      const ssize_t put = send(fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (put > 0) return {Status::kDone, static_cast<size_t>(put)};
      if (put == 0 || errno == EAGAIN || errno == EWOULDBLOCK) return {Status::kWantWrite};
      if (errno != EINTR) return {Status::kClosed};
    }
  }

  void finish_writing() override { shutdown(fd(), SHUT_WR); }

 private:
  const FileDescriptor socket_;
};

}  // namespace

std::unique_ptr<Channel> make_plain_channel(FileDescriptor socket) {
  return std::make_unique<PlainChannel>(std::move(socket));
}

Channel::Status Input::receive(Channel& channel) {
  if (!memory_) memory_ = std::make_unique_for_overwrite<char[]>(kHeadBytesMax);
  std::memmove(memory_.get(), memory_.get() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  const auto [status, count] = channel.read(std::span(memory_.get(), kHeadBytesMax).subspan(end_));
  end_ += count;
  return status;
}

void Input::release_if_empty() {
  if (!is_empty()) return;
  memory_.reset();
  clear();
}

namespace {

[[noreturn]] void refuse(const std::filesystem::path& file, const char* what) {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  throw InputError(file.string() + ": " + what + (reason ? std::string(": ") + reason : ""));
}

// The contents of a PEM file.
class Pem {
 public:
  explicit Pem(const std::filesystem::path& file)
      : text_(read_text_file(file, kBytesMax)),
        bio_(BIO_new_mem_buf(text_.data(), static_cast<int>(text_.size())), BIO_free) {
    if (!bio_) throw std::bad_alloc();
  }
  ~Pem() { OPENSSL_cleanse(text_.data(), text_.size()); }
  Pem(const Pem&) = delete;
  Pem& operator=(const Pem&) = delete;

  BIO* get() const { return bio_.get(); }
  // True if a line begins a section whose name ends with this.
  bool has(std::string_view label) const {
    return text_.find(std::string(label) + "-----\n") != text_.npos ||
           text_.find(std::string(label) + "-----\r\n") != text_.npos;
  }

 private:
  static constexpr uint64_t kBytesMax = 1 << 20;

  std::string text_;
  const std::unique_ptr<BIO, decltype(&BIO_free)> bio_;
};

// OpenSSL must not ask for a password on a terminal that may not be there.
int no_password(char*, int, int, void*) { return 0; }

using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;

std::time_t time_of(const ASN1_TIME* time) {
  std::tm utc{};
  return time != nullptr && ASN1_TIME_to_tm(time, &utc) == 1 ? timegm(&utc) : 0;
}

// The time for which a chain is valid.
struct Validity {
  std::time_t begin = 0;
  std::time_t end = std::numeric_limits<std::time_t>::max();

  void restrict_to(const X509* certificate) {
    begin = std::max(begin, time_of(X509_get0_notBefore(certificate)));
    end = std::min(end, time_of(X509_get0_notAfter(certificate)));
  }
};

Validity validity_of(SSL_CTX* context) {
  Validity validity;
  validity.restrict_to(SSL_CTX_get0_certificate(context));
  STACK_OF(X509)* issuers = nullptr;
  SSL_CTX_get0_chain_certs(context, &issuers);
  for (int i = 0; i < sk_X509_num(issuers); ++i) validity.restrict_to(sk_X509_value(issuers, i));
  return validity;
}

// Clients refuse a certificate outside of its time, but the server serves it.
void log_validity(const std::filesystem::path& file, const Validity& validity) {
  constexpr std::time_t kDay = 24 * 60 * 60;
  constexpr std::time_t kSoon = 14 * kDay;
  const std::time_t now = std::time(nullptr);
  const std::time_t days = (validity.end - now) / kDay;
  const std::string end = http_date(validity.end);
  if (validity.end <= now) {
    log_warning("{}: the certificate expired on {}; clients refuse it", file.string(), end);
  } else if (validity.begin > now) {
    log_warning("{}: the certificate is not valid before {}; clients refuse it", file.string(),
                http_date(validity.begin));
  } else if (validity.end - now < kSoon) {
    log_warning("{}: the certificate expires on {}; days left: {}", file.string(), end, days);
  } else {
    log_info("{}: the certificate is valid until {}; days left: {}", file.string(), end, days);
  }
}

// Adds the certificate and the others of its chain to the context. Returns false if one is broken.
bool use_chain(SSL_CTX* context, const Pem& pem) {
  const Certificate own(PEM_read_bio_X509_AUX(pem.get(), nullptr, no_password, nullptr), X509_free);
  if (!own || SSL_CTX_use_certificate(context, own.get()) != 1) return false;
  for (;;) {
    Certificate issuer(PEM_read_bio_X509(pem.get(), nullptr, no_password, nullptr), X509_free);
    if (!issuer) break;
    if (SSL_CTX_add0_chain_cert(context, issuer.get()) != 1) return false;
    issuer.release();  // the context's now
  }
  const unsigned long error = ERR_peek_last_error();
  if (ERR_GET_LIB(error) != ERR_LIB_PEM || ERR_GET_REASON(error) != PEM_R_NO_START_LINE) {
    return false;
  }
  ERR_clear_error();  // the end
  return true;
}

bool use_key(SSL_CTX* context, const Pem& pem) {
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
      PEM_read_bio_PrivateKey(pem.get(), nullptr, no_password, nullptr), EVP_PKEY_free);
  return key && SSL_CTX_use_PrivateKey(context, key.get()) == 1;
}

std::shared_ptr<SSL_CTX> load_context(const std::filesystem::path& certificate,
                                      const std::filesystem::path& key) {
  ERR_clear_error();
  const std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  if (!context) throw std::bad_alloc();
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                         SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE |
                                      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                      SSL_MODE_RELEASE_BUFFERS);
  // A call reads one record: what a client sends without end must not keep a thread in one call.
  SSL_CTX_clear_mode(context.get(), SSL_MODE_AUTO_RETRY);
  const Pem chain_pem(certificate);
  if (!use_chain(context.get(), chain_pem)) {
    if (chain_pem.has("PRIVATE KEY")) {
      ERR_clear_error();
      refuse(certificate, "a private key, and not a certificate; were the two files swapped?");
    }
    refuse(certificate, "not a certificate in PEM");
  }
  const Pem key_pem(key);
  if (!use_key(context.get(), key_pem)) {
    if (key_pem.has("CERTIFICATE")) {
      ERR_clear_error();
      refuse(key, "a certificate, and not its private key");
    }
    refuse(key, "not a private key in PEM without a password, of that certificate");
  }
  if (SSL_CTX_check_private_key(context.get()) != 1) {
    refuse(key, "not the key of that certificate");
  }
  return context;
}

class TlsChannel final : public Channel {
 public:
  TlsChannel(FileDescriptor socket, const std::shared_ptr<SSL_CTX>& context)
      : socket_(std::move(socket)), ssl_(SSL_new(context.get()), SSL_free) {
    if (!ssl_ || SSL_set_fd(ssl_.get(), socket_.get()) != 1) throw std::bad_alloc();
    SSL_set_accept_state(ssl_.get());
  }
  // A client could not otherwise tell the end from a connection that was cut.
  ~TlsChannel() override { say_goodbye(); }

  int fd() const override { return socket_.get(); }

  Result read(std::span<char> into) override {
    if (broken_) return {Status::kClosed};
    ERR_clear_error();
    const int size = static_cast<int>(std::min<size_t>(into.size(), INT_MAX));
    return result_of(SSL_read(ssl_.get(), into.data(), size));
  }

  Result write(std::string_view bytes) override {
    if (broken_) return {Status::kClosed};
    ERR_clear_error();
    const int size = static_cast<int>(std::min<size_t>(bytes.size(), INT_MAX));
    return result_of(SSL_write(ssl_.get(), bytes.data(), size));
  }

  void finish_writing() override {
    say_goodbye();
    shutdown(fd(), SHUT_WR);
  }

 private:
  void say_goodbye() {
    // OpenSSL forbids it for a session that has failed, or not begun.
    if (broken_ || !SSL_is_init_finished(ssl_.get())) return;
    if ((SSL_get_shutdown(ssl_.get()) & SSL_SENT_SHUTDOWN) != 0) return;
    ERR_clear_error();
    SSL_shutdown(ssl_.get());
  }

  Result result_of(int count) {
    if (count > 0) return {Status::kDone, static_cast<size_t>(count)};
    switch (SSL_get_error(ssl_.get(), count)) {
      case SSL_ERROR_WANT_READ:
        return {Status::kWantRead};
      case SSL_ERROR_WANT_WRITE:
        return {Status::kWantWrite};
      case SSL_ERROR_ZERO_RETURN:
        return {Status::kClosed};
      default:
        ERR_clear_error();
        broken_ = true;
        return {Status::kClosed};
    }
  }

  const FileDescriptor socket_;
  const std::unique_ptr<SSL, decltype(&SSL_free)> ssl_;
  bool broken_ = false;
};

}  // namespace

TlsCertificate::TlsCertificate(std::filesystem::path certificate, std::filesystem::path key)
    : certificate_(std::move(certificate)), key_(std::move(key)) {
  reload();
}

void TlsCertificate::reload() {
  auto context = load_context(certificate_, key_);
  const Validity validity = validity_of(context.get());
  log_validity(certificate_, validity);
  expires_at_ = validity.end;
  const std::lock_guard lock(mutex_);
  context_ = std::move(context);
}

std::unique_ptr<Channel> TlsCertificate::make_channel(FileDescriptor socket) const {
  std::shared_ptr<SSL_CTX> context;
  {
    const std::lock_guard lock(mutex_);
    context = context_;
  }
  return std::make_unique<TlsChannel>(std::move(socket), context);
}

}  // namespace blindfuse::http
