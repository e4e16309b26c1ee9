// The HTTP server under another service than ours: it knows nothing of what it serves.
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <ctime>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

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

 private:
  class Echo final : public Exchange {
   public:
    Echo(EchoHandler& handler, RequestHead head) : handler_(handler), head_(std::move(head)) {}

    std::optional<uint64_t> body_bytes_max() const override {
      if (head_.method != "POST" || head_.path == "/refuse") return std::nullopt;
      return 1000;
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

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_let_go_ = false;
  int begun_ = 0;
  std::vector<std::thread> threads_;
  std::atomic<int> open_ = 0;
  std::atomic<int> looks_ = 0;
  std::atomic<uint64_t> sent_ = 0;
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

TEST_F(HttpService, NeedsAThread) {
  EXPECT_THROW(Server(handler_, ListeningSocket({}), Options{.threads = 0}), UsageError);
}

}  // namespace
}  // namespace blindfuse::http
