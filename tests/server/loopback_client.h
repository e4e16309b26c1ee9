// A client that sends exactly the bytes that a test gives it, and takes responses apart without
// forgiving anything.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace blindfuse::server_testing {

struct HttpResponse {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;

  bool has(const std::string& name) const { return headers.contains(name); }
  std::string header(const std::string& name) const {
    const auto at = headers.find(name);
    return at == headers.end() ? "" : at->second;
  }
  // The last part of a problem's type; fails the test when the body is not a problem document.
  std::string problem() const {
    EXPECT_EQ(header("content-type"), "application/problem+json");
    const auto document = nlohmann::json::parse(body);
    EXPECT_EQ(document.at("status"), status);
    EXPECT_FALSE(document.at("title").get<std::string>().empty());
    EXPECT_FALSE(document.at("detail").get<std::string>().empty());
    const std::string prefix = "urn:blindfuse:problem:";
    const std::string type = document.at("type");
    EXPECT_EQ(type.substr(0, prefix.size()), prefix);
    return type.substr(prefix.size());
  }
  std::string detail() const { return nlohmann::json::parse(body).at("detail"); }
  std::string epoch() const { return nlohmann::json::parse(body).value("epoch", ""); }
};

class EndedEarly : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class LoopbackClient {
 public:
  // "http://127.0.0.1:PORT", or "unix:PATH". With buffer_bytes, the system takes about as many in
  // for the client; else as many as it likes.
  explicit LoopbackClient(const std::string& url, int buffer_bytes = 0)
      : buffer_bytes_(buffer_bytes) {
    if (url.starts_with("unix:")) {
      sockaddr_un address{};
      address.sun_family = AF_UNIX;
      url.copy(address.sun_path, sizeof address.sun_path - 1, 5);
      connect_to(address, AF_UNIX, url);
      return;
    }
    const auto port = htons(static_cast<uint16_t>(std::stoi(url.substr(url.rfind(':') + 1))));
    if (url.find('[') != std::string::npos) {
      connect_to(sockaddr_in6{AF_INET6, port, 0, in6addr_loopback, 0}, AF_INET6, url);
    } else {
      connect_to(sockaddr_in{AF_INET, port, {htonl(INADDR_LOOPBACK)}, {}}, AF_INET, url);
    }
  }
  virtual ~LoopbackClient() { close(); }
  LoopbackClient(const LoopbackClient&) = delete;
  LoopbackClient& operator=(const LoopbackClient&) = delete;

  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

  // The client will say no more; it still listens.
  void finish_sending() { shutdown(fd_, SHUT_WR); }

  // false when the server does not take all of it.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t put = write_some(bytes.data(), bytes.size());
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) return false;
      bytes.remove_prefix(static_cast<size_t>(put));
    }
    return true;
  }

  // TCP's urgent data, which no request has.
  void send_urgent_byte() { ::send(fd_, "!", 1, MSG_OOB | MSG_NOSIGNAL); }

  // The next response. Throws when the connection ends before it does.
  HttpResponse receive(bool to_head_request = false) {
    size_t end = 0;
    while ((end = pending_.find("\r\n\r\n")) == std::string::npos) receive_more();
    HttpResponse response = parse_head(pending_.substr(0, end + 2));
    pending_.erase(0, end + 4);
    if (to_head_request || response.status == 304 || response.status == 100) return response;
    const size_t length = std::stoull(response.header("content-length"));
    while (pending_.size() < length) receive_more();
    response.body = pending_.substr(0, length);
    pending_.erase(0, length);
    return response;
  }

  HttpResponse ask(std::string_view bytes) {
    send(bytes);
    return receive();
  }

  // Something has come, and is left for receive().
  void wait_until_readable() {
    pollfd waiting{fd_, POLLIN, 0};
    EXPECT_EQ(poll(&waiting, 1, 60'000), 1);
  }

  // Takes something of the response that is coming, for receive() to go on with.
  size_t take_some() {
    const size_t before = pending_.size();
    receive_more();
    return pending_.size() - before;
  }

  // Whether the response that is coming ends before it is whole; takes what comes of it.
  bool is_cut_off() {
    try {
      receive();
      return false;
    } catch (const EndedEarly&) {
      return true;
    }
  }

  // Whether the server has closed, with nothing more to read; waits for it.
  bool is_closed() {
    if (!pending_.empty()) return false;
    char byte = 0;
    pollfd waiting{fd_, POLLIN, 0};
    poll(&waiting, 1, 20'000);
    return recv(fd_, &byte, 1, MSG_DONTWAIT) == 0;
  }

 protected:
  int fd() const { return fd_; }
  virtual ssize_t write_some(const char* bytes, size_t size) {
    return ::send(fd_, bytes, size, MSG_NOSIGNAL);
  }
  virtual ssize_t read_some(char* bytes, size_t size) { return recv(fd_, bytes, size, 0); }

 private:
  // A server that says nothing more fails the test, instead of holding up all of them.
  template <typename Address>
  void connect_to(const Address& address, int family, const std::string& url) {
    fd_ = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const timeval patience{.tv_sec = 60, .tv_usec = 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (buffer_bytes_ != 0) {
      setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &buffer_bytes_, sizeof buffer_bytes_);
    }
    if (connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return;
    close();
    throw std::runtime_error("cannot connect to " + url);
  }

  void receive_more() {
    char bytes[65'536];
    const ssize_t got = read_some(bytes, sizeof bytes);
    if (got < 0 && errno == EINTR) return;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      throw std::runtime_error("the server has sent nothing for a minute");
    }
    if (got <= 0) throw EndedEarly("the connection ended within a response");
    pending_.append(bytes, static_cast<size_t>(got));
  }

  static HttpResponse parse_head(const std::string& head) {
    HttpResponse response;
    EXPECT_EQ(head.substr(0, 9), "HTTP/1.1 ");
    response.status = std::stoi(head.substr(9, 3));
    size_t at = head.find("\r\n") + 2;
    while (at < head.size()) {
      const size_t end = head.find("\r\n", at);
      const size_t colon = head.find(": ", at);
      EXPECT_LT(colon, end);
      std::string name = head.substr(at, colon - at);
      for (char& c : name) c = static_cast<char>(std::tolower(c));
      const bool added =
          response.headers.emplace(name, head.substr(colon + 2, end - colon - 2)).second;
      EXPECT_TRUE(added) << name << " is there twice";
      at = end + 2;
    }
    // RFC 9110, section 6.6.1. Interim responses need none.
    EXPECT_EQ(response.has("date"), response.status >= 200) << head;
    return response;
  }

  const int buffer_bytes_;
  int fd_ = -1;
  std::string pending_;
};

inline std::string get_request(const std::string& target, const std::string& headers = "",
                               const std::string& method = "GET") {
  return method + " " + target + " HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n";
}

inline std::string post_head(const std::string& target, const std::string& content_type,
                             const std::string& length) {
  return "POST " + target + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: " + content_type +
         "\r\nContent-Length: " + length + "\r\n\r\n";
}

inline std::string post_request(const std::string& target, const std::string& content_type,
                                const std::string& body) {
  return post_head(target, content_type, std::to_string(body.size())) + body;
}

// The parameters in the query string of a request for hints or masks, as /openapi.json has them.
inline std::vector<std::string> hint_parameters(const nlohmann::json& document,
                                                const std::string& method) {
  std::vector<std::string> names;
  const auto& operation = document.at("paths").at("/v1/epochs/{epoch}/hint").at(method);
  for (const auto& parameter : operation.at("parameters")) {
    if (parameter.value("in", "") == "query") names.push_back(parameter.at("name"));
  }
  return names;
}

}  // namespace blindfuse::server_testing
