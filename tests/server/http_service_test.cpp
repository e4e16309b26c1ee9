// The HTTP server under another service than ours: it knows nothing of what it serves.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

// Before Asio, whose version 1.74 uses std::exchange without it.
#include <utility>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <deque>
#include <fstream>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "host/server/http/connection.h"
#include "host/server/http/server.h"
#include "src/base/errors.h"
#include "tests/server/loopback_client.h"

namespace blindfuse::http {
namespace {

using server_testing::get_request;
using server_testing::HttpResponse;
using server_testing::LoopbackClient;

// Echoes bodies, from a thread of its own once it is let go.
class EchoHandler final : public Handler {
 public:
  ~EchoHandler() override {
    let_go();  // also after a test that failed
    for (std::thread& thread : threads_) thread.join();
  }

  std::unique_ptr<Exchange> begin(RequestHead head, const std::string&) override {
    return std::make_unique<Echo>(*this, std::move(head));
  }
  Response refuse(const Error& error, const std::string&) override {
    return {.status = error.status(), .text = error.what()};
  }
  uint64_t all_bodies_bytes_max() const override { return 1 << 20; }
  uint64_t all_responses_bytes_max() const override { return 1 << 20; }
  void on_connection_opened() override { ++open_; }
  void on_connection_closed() override { --open_; }
  void on_sent(uint64_t bytes) override { sent_ += bytes; }
  void on_cut(Cut why, size_t count) override {
    if (why == Cut::kRequestMemory) bodies_cut_ += count;
  }

  void let_go() {
    const std::lock_guard lock(mutex_);
    is_let_go_ = true;
    changed_.notify_all();
  }
  void wait_for_begun(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return begun_ == count; });
  }
  int open() const { return open_; }
  // How often connections have looked for their answers.
  int looks() const { return looks_; }
  uint64_t sent() const { return sent_; }
  // Bodies that were given up because all of them had too many bytes.
  uint64_t bodies_cut() const { return bodies_cut_; }

 private:
  class Echo final : public Exchange {
   public:
    Echo(EchoHandler& handler, RequestHead head) : handler_(handler), head_(std::move(head)) {}

    std::optional<uint64_t> body_bytes_max() const override {
      if (head_.method != "POST" || head_.path == "/refuse") return std::nullopt;
      return head_.path == "/large" ? 64 << 20 : 1000;
    }
    uint64_t take_body(std::span<char> body) override {
      text_->assign(body.begin(), body.end());
      return text_->size();
    }
    std::optional<Clock::time_point> start(std::function<void()> on_done) override {
      if (head_.path != "/later") return std::nullopt;
      const std::lock_guard lock(handler_.mutex_);
      handler_.threads_.emplace_back(
          [&handler = handler_, done = done_, on_done = std::move(on_done)] {
            std::unique_lock held(handler.mutex_);
            ++handler.begun_;
            handler.changed_.notify_all();
            handler.changed_.wait(held, [&] { return handler.is_let_go_; });
            *done = true;
            held.unlock();
            on_done();
          });
      return Clock::now() + std::chrono::hours(1);
    }
    bool is_done() const override {
      ++handler_.looks_;
      return *done_;
    }
    Response respond() override {
      if (head_.path == "/held") handler_.hold_this_thread();
      if (head_.path == "/empty") return {.status = 204};
      if (head_.path == "/same") return {.status = 304, .headers = {{"ETag", "\"x\""}}};
      return {.text = head_.method + " " + head_.path + " " + *text_};
    }
    Response refuse(const Error& error, uint64_t body_bytes) override {
      return {.status = error.status(), .text = std::to_string(body_bytes) + " bytes came"};
    }

   private:
    EchoHandler& handler_;
    const RequestHead head_;
    const std::shared_ptr<std::string> text_ = std::make_shared<std::string>();
    const std::shared_ptr<std::atomic<bool>> done_ = std::make_shared<std::atomic<bool>>(false);
  };

  void hold_this_thread() {
    std::unique_lock held(mutex_);
    ++begun_;
    changed_.notify_all();
    changed_.wait(held, [&] { return is_let_go_; });
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_let_go_ = false;
  int begun_ = 0;
  std::vector<std::thread> threads_;
  std::atomic<int> open_ = 0;
  std::atomic<int> looks_ = 0;
  std::atomic<uint64_t> sent_ = 0;
  std::atomic<uint64_t> bodies_cut_ = 0;
};

class HttpService : public ::testing::Test {
 protected:
  static std::string post(const std::string& path, const std::string& body) {
    return server_testing::post_request(path, "text/plain", body);
  }

  EchoHandler handler_;
  Server server_{handler_, ListeningSocket({}), Options{.threads = 2}};
};

TEST_F(HttpService, AnswersRequestAfterRequest) {
  LoopbackClient client(server_.url());
  EXPECT_EQ(client.ask(get_request("/a")).body, "GET /a ");
  EXPECT_EQ(client.ask(post("/b", "hello")).body, "POST /b hello");
  client.send(post("/c", "one") + get_request("/d"));
  EXPECT_EQ(client.receive().body, "POST /c one");
  EXPECT_EQ(client.receive().body, "GET /d ");
  EXPECT_EQ(client
                .ask("POST /e HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                     "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
                .body,
            "POST /e abcde");
}

// The example of RFC 9110, section 5.6.7, and times of `date -u`.
TEST(HttpDate, IsWrittenAsTheRfcSays) {
  EXPECT_EQ(http_date(784'111'777), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(http_date(0), "Thu, 01 Jan 1970 00:00:00 GMT");
  EXPECT_EQ(http_date(1'709'251'199), "Thu, 29 Feb 2024 23:59:59 GMT");
  EXPECT_EQ(http_date(4'102'444'800), "Fri, 01 Jan 2100 00:00:00 GMT");
}

TEST_F(HttpService, SaysWhenItAnswered) {
  const std::time_t before = std::time(nullptr);
  const std::string date = LoopbackClient(server_.url()).ask(get_request("/a")).header("date");
  std::tm utc{};
  ASSERT_NE(strptime(date.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &utc), nullptr) << date;
  EXPECT_GE(timegm(&utc), before);
  EXPECT_LE(timegm(&utc), std::time(nullptr));
}

// RFC 9112, section 9.6, lets either side close its half: a client that has is answered. It gets an
// interim response first, which a client that has closed all of its connection would refuse.
TEST_F(HttpService, AnswersAClientThatHasFinishedSending) {
  LoopbackClient later(server_.url());
  later.send(post("/later", "x"));
  handler_.wait_for_begun(1);
  later.finish_sending();
  EXPECT_EQ(later.receive().status, 100);
  handler_.let_go();
  EXPECT_EQ(later.receive().body, "POST /later x");
  EXPECT_TRUE(later.is_closed());
}

// It cannot be asked whether it is still there.
TEST_F(HttpService, TakesAnOldClientThatHasFinishedSendingForGone) {
  LoopbackClient later(server_.url());
  later.send("POST /later HTTP/1.0\r\nContent-Length: 1\r\n\r\nx");
  handler_.wait_for_begun(1);
  later.finish_sending();
  EXPECT_TRUE(later.is_closed());
  handler_.let_go();
}

TEST_F(HttpService, WaitsForAnAnswerThatComesFromAnotherThread) {
  LoopbackClient later(server_.url());
  later.send(post("/later", "x"));
  handler_.wait_for_begun(1);
  EXPECT_EQ(LoopbackClient(server_.url()).ask(get_request("/now")).body, "GET /now ");
  handler_.let_go();
  EXPECT_EQ(later.receive().body, "POST /later x");
}

// Bytes that no request has do not keep a thread awake, before what belongs to a request or after.
TEST_F(HttpService, WaitsQuietlyNextToUrgentData) {
  std::deque<LoopbackClient> clients;
  for (const std::string order : {"G!", "!G", "!", "!G!G"}) {
    LoopbackClient& later = clients.emplace_back(server_.url());
    later.send(post("/later", "x"));
    handler_.wait_for_begun(static_cast<int>(clients.size()));
    const int looks = handler_.looks();
    for (const char c : order) {
      if (c == '!') {
        later.send_urgent_byte();
      } else {
        later.send("G");
      }
    }
    for (int i = 0; i < 1000; ++i) LoopbackClient(server_.url()).ask(get_request("/now"));
    EXPECT_LT(handler_.looks(), looks + 20) << order;
  }
  handler_.let_go();
  for (LoopbackClient& later : clients) EXPECT_EQ(later.receive().body, "POST /later x");
}

TEST_F(HttpService, AsksForTheBodyThatAClientHoldsBack) {
  LoopbackClient client(server_.url());
  client.send("POST /f HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.receive().status, 100);
  EXPECT_EQ(client.ask("hi").body, "POST /f hi");
}

// RFC 9110, section 10.1.1: the server ignores the expectation of such a request.
TEST_F(HttpService, AsksNoOldClientForItsBody) {
  Server server(handler_, ListeningSocket({}), Options{.threads = 1});
  LoopbackClient client(server.url());
  client.send("POST /f HTTP/1.0\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  // The only thread has read that head by now.
  EXPECT_EQ(LoopbackClient(server.url()).ask(get_request("/now")).status, 200);
  EXPECT_EQ(client.ask("hi").body, "POST /f hi");
}

// At the limit itself. None of them ends by its own time.
TEST_F(HttpService, ClosesTheOldestForOneConnectionTooMany) {
  // With one thread, a client's connection waits for the next request before another is accepted.
  Server server(
      handler_, ListeningSocket({}),
      Options{.threads = 1, .connections_max = 3, .timeouts = {.idle = std::chrono::minutes(10)}});
  std::deque<LoopbackClient> clients;
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(clients.emplace_back(server.url()).ask(get_request("/a")).status, 200);
  }
  EXPECT_TRUE(clients.front().is_closed());
  for (size_t i = 1; i < 4; ++i) EXPECT_EQ(clients[i].ask(get_request("/b")).status, 200);
}

TEST_F(HttpService, SendsNoBodyWhereThereIsNone) {
  LoopbackClient client(server_.url());
  client.send(get_request("/g", "", "HEAD"));
  const HttpResponse head = client.receive(true);
  EXPECT_EQ(head.header("content-length"), "8") << "of what GET would send";
  client.send(get_request("/same"));
  EXPECT_FALSE(client.receive(true).has("content-length"));
  client.send(get_request("/empty"));
  EXPECT_FALSE(client.receive(true).has("content-length"));
  EXPECT_EQ(client.ask(get_request("/h")).body, "GET /h ");
}

TEST_F(HttpService, LetsTheServiceSayWhatIsWrong) {
  LoopbackClient broken(server_.url());
  const HttpResponse bad = broken.ask("nonsense\r\n\r\n");
  EXPECT_EQ(bad.status, 400);
  EXPECT_FALSE(bad.body.empty());
  EXPECT_TRUE(broken.is_closed());
  LoopbackClient chunks(server_.url());
  const HttpResponse cut =
      chunks.ask("POST /i HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcX\r\n");
  EXPECT_EQ(cut.status, 400);
  EXPECT_EQ(cut.body, "3 bytes came");
  EXPECT_TRUE(chunks.is_closed());
  LoopbackClient unread(server_.url());
  EXPECT_EQ(unread.ask(post("/refuse", "a body that nobody reads")).status, 200);
  EXPECT_TRUE(unread.is_closed()) << "nobody takes it for a request";
}

TEST_F(HttpService, TellsTheServiceOfItsConnections) {
  {
    LoopbackClient client(server_.url());
    EXPECT_EQ(client.ask(get_request("/j")).status, 200);
    EXPECT_EQ(handler_.open(), 1);
  }
  server_.stop();
  EXPECT_EQ(handler_.open(), 0);
  EXPECT_GT(handler_.sent(), 30u);
}

// The state of a thread of this process, as the system has it: S while it waits.
char state_of_thread(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string line;
  std::getline(file, line);
  return line.at(line.rfind(')') + 2);
}

// They are in the system's queue, and the server's only thread is held while it is told to stop.
TEST(HttpServiceThatStops, AnswersClientsThatItHasNotAcceptedYet) {
  EchoHandler handler;
  Server server(handler, ListeningSocket({}), Options{.threads = 1});
  LoopbackClient held(server.url());
  held.send(get_request("/held"));
  handler.wait_for_begun(1);
  std::deque<LoopbackClient> clients;
  for (int i = 0; i < 3; ++i) clients.emplace_back(server.url()).send(get_request("/now"));
  std::promise<pid_t> stopping;
  auto stopped = std::async(std::launch::async, [&] {
    stopping.set_value(gettid());
    server.stop();
  });
  const pid_t thread = stopping.get_future().get();
  while (state_of_thread(thread) != 'S') std::this_thread::yield();
  handler.let_go();
  EXPECT_EQ(held.receive().status, 200);
  for (LoopbackClient& client : clients) {
    const HttpResponse response = client.receive();
    EXPECT_EQ(response.body, "GET /now ");
    EXPECT_EQ(response.header("connection"), "close");
  }
  stopped.get();
}

// A client whose bytes are there whenever they are asked for: a head, and then a body without end.
class EndlessChannel final : public Channel {
 public:
  static constexpr uint64_t kBytesMax = 32 << 20;

  EndlessChannel(FileDescriptor socket, std::string head, std::string body, uint64_t& bytes_read)
      : socket_(std::move(socket)),
        pending_(std::move(head)),
        body_(std::move(body)),
        bytes_read_(bytes_read) {}

  int fd() const override { return socket_.get(); }
  Result read(std::span<char> into) override {
    if (bytes_read_ > kBytesMax) return {Status::kClosed};
    into = into.first(std::min<size_t>(into.size(), 16 << 10));
    while (pending_.size() < into.size()) pending_ += body_;
    pending_.copy(into.data(), into.size());
    pending_.erase(0, into.size());
    bytes_read_ += into.size();
    return {Status::kDone, into.size()};
  }
  Result write(std::string_view bytes) override { return {Status::kDone, bytes.size()}; }
  void finish_writing() override {}

 private:
  const FileDescriptor socket_;
  std::string pending_;
  const std::string body_;
  uint64_t& bytes_read_;
};

class EndlessBody : public ::testing::TestWithParam<std::pair<const char*, const char*>> {
 protected:
  static std::pair<FileDescriptor, FileDescriptor> socket_pair() {
    int sockets[2];
    const int result = socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sockets);
    EXPECT_EQ(result, 0);
    return {FileDescriptor(sockets[0]), FileDescriptor(sockets[1])};
  }
  void serve(std::unique_ptr<Channel> channel) {
    Connection::spawn(std::make_shared<Connection>(boost::asio::make_strand(io_),
                                                   std::move(channel), "peer", context_));
  }

  EchoHandler handler_;
  Context context_{handler_, Options{}};
  boost::asio::io_context io_{1};
};

// One thread serves them, and it counts what has come: by the bytes of the body, and, before it
// lets others go on, by those of the wire.
TEST_P(EndlessBody, LetsOthersGoOnAndHasALimit) {
  const auto [head, body] = GetParam();
  auto [endless, other_end] = socket_pair();
  auto [served, client] = socket_pair();
  uint64_t bytes_read = 0;
  serve(std::make_unique<EndlessChannel>(
      std::move(endless), "POST /large HTTP/1.1\r\nHost: x\r\n" + std::string(head) + "\r\n\r\n",
      body, bytes_read));
  serve(make_plain_channel(std::move(served)));
  const std::string request = "GET /now HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
  ASSERT_EQ(write(client.get(), request.data(), request.size()),
            static_cast<ssize_t>(request.size()));
  while (handler_.sent() == 0 && io_.run_one() > 0) {
  }
  EXPECT_GT(bytes_read, 0u);
  EXPECT_LT(bytes_read, 1u << 20) << "before another client was answered";
  io_.run();
  EXPECT_EQ(handler_.bodies_cut(), 1u);
  EXPECT_LT(bytes_read, EndlessChannel::kBytesMax) << "bodies may have 1 MiB";
}

INSTANTIATE_TEST_SUITE_P(Bodies, EndlessBody,
                         ::testing::Values(std::pair("Transfer-Encoding: chunked", "1\r\nx\r\n"),
                                           std::pair("Content-Length: 67108864", "x")));

TEST_F(HttpService, NeedsAThread) {
  EXPECT_THROW(Server(handler_, ListeningSocket({}), Options{.threads = 0}), UsageError);
}

}  // namespace
}  // namespace blindfuse::http
