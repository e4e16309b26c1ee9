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

  Awaitable<Response> answer(Connection& client) override {
    const RequestHead& head = client.head();
    std::string text;
    if (head.method == "POST" && head.path != "/refuse") {
      try {
        const uint64_t most = head.path == "/large" ? 64 << 20 : 1000;
        const auto body = co_await client.read_body(most, kMost);
        text.assign(body.begin(), body.end());
      } catch (const Error& error) {
        Response refusal{.status = error.status(),
                         .text = std::to_string(client.body_bytes()) + " bytes came"};
        co_return refusal;
      }
      const std::function<void()> check = [] {};
      const uint64_t size = text.size();
      co_await client.reserve_response(size, kMost, check);
      client.release_body();
    }
    if (head.path == "/later") {
      const auto done = std::make_shared<std::atomic<bool>>(false);
      start_work(done, client.waker());
      const std::function<bool()> is_done = [&] {
        ++looks_;
        return done->load();
      };
      const auto deadline = Clock::now() + std::chrono::hours(1);
      co_await client.wait_until(is_done, deadline);
    }
    if (head.path == "/held") hold_this_thread();
    Response response{.text = head.method + " " + head.path + " " + text};
    if (head.path == "/empty") response = {.status = 204};
    if (head.path == "/same") response = {.status = 304, .headers = {{"ETag", "\"x\""}}};
    co_return response;
  }
  Response refuse(const Error& error, const std::string&) override {
    return {.status = error.status(), .text = error.what()};
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
  // How often connections have looked for their answers.
  int looks() const { return looks_; }

 private:
  static constexpr uint64_t kMost = 1 << 20;  // of all bodies, and of all responses

  void start_work(const std::shared_ptr<std::atomic<bool>>& done, std::function<void()> on_done) {
    const std::lock_guard lock(mutex_);
    threads_.emplace_back([this, done, on_done = std::move(on_done)] {
      hold_this_thread();
      *done = true;
      on_done();
    });
  }

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
  std::atomic<int> looks_ = 0;
};

class HttpService : public ::testing::Test {
 protected:
  static std::string post(const std::string& path, const std::string& body) {
    return server_testing::post_request(path, "text/plain", body);
  }

  EchoHandler handler_;
  Server server_{handler_, ListeningSocket({}), Options{.threads = 2}};
};

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

// RFC 9110, section 10.1.1: the server ignores the expectation of such a request.
TEST_F(HttpService, AsksNoOldClientForItsBody) {
  Server server(handler_, ListeningSocket({}), Options{.threads = 1});
  LoopbackClient client(server.url());
  client.send("POST /f HTTP/1.0\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  // The only thread has read that head by now.
  EXPECT_EQ(LoopbackClient(server.url()).ask(get_request("/now")).status, 200);
  EXPECT_EQ(client.ask("hi").body, "POST /f hi");
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

TEST(LogLimit, CountsWhatIsLeftOut) {
  using std::chrono::seconds;
  LogLimit limit(seconds(60));
  const Clock::time_point start{};
  EXPECT_EQ(limit.count(start), 1u);
  EXPECT_EQ(limit.count(start), std::nullopt);
  EXPECT_EQ(limit.count(start + seconds(59)), std::nullopt);
  EXPECT_EQ(limit.count(start + seconds(60)), 3u);
  EXPECT_EQ(limit.count(start + seconds(119)), std::nullopt);
  EXPECT_EQ(limit.count(start + seconds(600)), 2u);
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
  while (context_.sent_bytes == 0 && io_.run_one() > 0) {
  }
  EXPECT_GT(bytes_read, 0u);
  EXPECT_LT(bytes_read, 1u << 20) << "before another client was answered";
  io_.run();
  EXPECT_EQ(context_.load().cuts[static_cast<size_t>(Cut::kRequestMemory)], 1u);
  EXPECT_LT(bytes_read, EndlessChannel::kBytesMax) << "bodies may have 1 MiB";
}

INSTANTIATE_TEST_SUITE_P(Bodies, EndlessBody,
                         ::testing::Values(std::pair("Transfer-Encoding: chunked", "1\r\nx\r\n"),
                                           std::pair("Content-Length: 67108864", "x")));

}  // namespace
}  // namespace blindfuse::http
