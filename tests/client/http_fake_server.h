// The fake server of client tests with real HTTP on a port of this machine.
#pragma once

#include <httplib.h>

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "tests/client/client_testing.h"
#include "tests/client/fake_server.h"
#include "tests/client/self_signed.h"

namespace blindfuse {

#ifdef __SANITIZE_THREAD__
// The library is one that ThreadSanitizer did not instrument. It does not see that the first thread
// to use a static table or regular expression in there fills it before another reads it. So all are
// filled by requests whose threads end before any other begins.
inline void fill_tables_of_http_library() {
  static std::once_flag once;
  std::call_once(once, [] {
    httplib::Server server;
    const auto handle = [](const httplib::Request&, httplib::Response& response) {
      response.set_content("text", "application/json");
    };
    server.Get(".*", handle);
    server.Post(".*", handle);
    const int port = server.bind_to_any_port("127.0.0.1");
    std::thread thread([&] { server.listen_after_bind(); });
    while (!server.is_running()) std::this_thread::yield();
    {
      httplib::Client client("http://127.0.0.1:" + std::to_string(port));
      client.Get("/a?b=c", {{"Range", "bytes=1-2"}, {"Accept-Encoding", "gzip, br"}});
      client.Post("/", "text", "text/plain");
    }
    server.stop();
    thread.join();
  });
}
#else
inline void fill_tables_of_http_library() {}
#endif

class HttpFakeServer {
 public:
  // Under `prefix`, by this server or another one.
  explicit HttpFakeServer(FakeServer& fake, std::string prefix = "",
                          std::unique_ptr<httplib::Server> http = nullptr)
      : fake_(fake),
        prefix_(std::move(prefix)),
        http_(http ? std::move(http) : std::make_unique<httplib::Server>()) {
    fill_tables_of_http_library();
    const auto handle = [this](const httplib::Request& request, httplib::Response& response) {
      answer(request, response);
    };
    http_->Get(".*", handle);
    http_->Post(".*", handle);
    http_->set_tcp_nodelay(true);
    http_->set_keep_alive_timeout(1);
    http_->set_keep_alive_max_count(100);
    port_ = http_->bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { http_->listen_after_bind(); });
    while (!http_->is_running()) std::this_thread::yield();
  }
  HttpFakeServer(FakeServer& fake, const SelfSigned& certificate)
      : HttpFakeServer(
            fake, "",
            std::make_unique<httplib::SSLServer>(certificate.certificate, certificate.key)) {
    scheme_ = "https";
  }
  ~HttpFakeServer() {
    http_->stop();
    thread_.join();
  }

  int port() const { return port_; }
  std::string url() const { return scheme_ + "://127.0.0.1:" + std::to_string(port_) + prefix_; }
  // Of the clients' connections.
  size_t connection_count() {
    const std::lock_guard lock(mutex_);
    return ports_.size();
  }
  httplib::Headers last_headers() {
    const std::lock_guard lock(mutex_);
    return headers_;
  }

 private:
  void answer(const httplib::Request& request, httplib::Response& response) {
    {
      const std::lock_guard lock(mutex_);
      headers_ = request.headers;
      ports_.insert(request.remote_port);
    }
    // httplib itself cuts what a Range header asks for out of the whole body.
    const std::string path =
        request.target.starts_with(prefix_) ? request.target.substr(prefix_.size()) : "/elsewhere";
    CollectedBody collector;
    const SeenRequest seen = {
        .method = request.method,
        .path = path,
        .first_byte = request.ranges.empty() ? 0 : static_cast<uint64_t>(request.ranges[0].first),
        .body = Bytes(request.body.begin(), request.body.end()),
        .cut_later = true};
    const HttpReply reply = fake_.answer(seen, collector);
    response.status = reply.status == 200 && !request.ranges.empty() ? 206 : reply.status;
    if (reply.retry_after_s)
      response.set_header("Retry-After", std::to_string(*reply.retry_after_s));
    if (reply.status == 200) {
      response.set_content(collector.text, "application/octet-stream");
    } else {
      response.set_content(reply.problem, reply.content_type);
    }
  }

  FakeServer& fake_;
  std::string scheme_ = "http";
  const std::string prefix_;
  std::unique_ptr<httplib::Server> http_;
  std::mutex mutex_;
  httplib::Headers headers_;
  std::set<int> ports_;
  int port_ = 0;
  std::thread thread_;
};

}  // namespace blindfuse
