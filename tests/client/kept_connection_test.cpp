// Connections that outlive a request, and servers that do not keep them.
#include <blindfuse/client.h>
#include <blindfuse/errors.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/err.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <memory>
#include <string>

#include "client/http_transport.h"
#include "tests/client/client_testing.h"
#include "tests/client/http_fake_server.h"
#include "tests/client/raw_server.h"
#include "tests/client/self_signed.h"
#include "tests/client/watched_fake_server.h"

namespace blindfuse {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The body of what comes.
std::string get(HttpTransport& transport) {
  CollectedBody body;
  EXPECT_EQ(transport.get("/x", 0, body).status, 200);
  return body.text;
}

void post(HttpTransport& transport) {
  CollectedBody body;
  transport.post("/x", std::vector<uint8_t>(4, 'q'), body);
}

std::string answer(const std::string& headers, const std::string& body = "hi") {
  return "HTTP/1.1 200 OK\r\n" + headers + "Content-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

// Answers this many requests of each connection, and closes it when it has read one more.
class ClosingServer {
 public:
  explicit ClosingServer(std::vector<int> answered, std::string answer = blindfuse::answer(""))
      : answered_(std::move(answered)),
        answer_(std::move(answer)),
        server_([this](int connection) { serve(connection); }) {}

  std::string url() const { return server_.url(); }
  // The methods of the requests that each connection brought.
  std::vector<std::string> seen() {
    const std::lock_guard lock(mutex_);
    return seen_;
  }

 private:
  void serve(int connection) {
    size_t index = 0;
    {
      const std::lock_guard lock(mutex_);
      index = seen_.size();
      seen_.emplace_back();
    }
    const int answers = index < answered_.size() ? answered_[index] : 1000;
    for (int i = 0;; ++i) {
      const std::string head = read_head(connection);
      if (head.empty()) return;
      if (head.starts_with("POST")) {
        char body[4];
        EXPECT_EQ(recv(connection, body, sizeof body, MSG_WAITALL), 4);
      }
      {
        const std::lock_guard lock(mutex_);
        seen_[index] += head[0];
      }
      if (i == answers || !send_all(connection, answer_)) return;
    }
  }

  const std::vector<int> answered_;
  const std::string answer_;
  std::mutex mutex_;
  std::vector<std::string> seen_;
  RawServer server_;
};

TEST(KeptConnectionTest, OneThatClosesUnderAGetIsOpenedAgainOnce) {
  ClosingServer server({1});
  HttpTransport transport(parse_url(server.url()), HttpOptions());
  EXPECT_EQ(get(transport), "hi");
  EXPECT_EQ(get(transport), "hi");
  EXPECT_EQ(get(transport), "hi");
  EXPECT_THAT(server.seen(), ElementsAre("GG", "GG"));
}

TEST(KeptConnectionTest, AServerThatAnswersNothingMoreIsAnErrorAfterThat) {
  ClosingServer server({1, 0, 0});
  HttpTransport transport(parse_url(server.url()), HttpOptions());
  EXPECT_EQ(get(transport), "hi");
  CollectedBody body;
  EXPECT_THROW(transport.get("/x", 0, body), ConnectionError);
  EXPECT_THAT(server.seen(), ElementsAre("GG", "G"));
  EXPECT_THROW(transport.get("/x", 0, body), ConnectionError);
  EXPECT_THAT(server.seen(), ElementsAre("GG", "G", "G"));
}

TEST(KeptConnectionTest, AQueryIsNotSentAgain) {
  ClosingServer server({1});
  HttpTransport transport(parse_url(server.url()), HttpOptions());
  EXPECT_EQ(get(transport), "hi");
  EXPECT_THROW(post(transport), KeptConnectionClosed);
  EXPECT_THAT(server.seen(), ElementsAre("GP"));
  EXPECT_NO_THROW(post(transport));
  EXPECT_THAT(server.seen(), ElementsAre("GP", "P"));
}

TEST(KeptConnectionTest, AQueryOverANewConnectionIsNotWorthAnother) {
  ClosingServer server({0});
  HttpTransport transport(parse_url(server.url()), HttpOptions());
  // No KeptConnectionClosed, whose text is another.
  EXPECT_THAT(message_of<ConnectionError>([&] { post(transport); }),
              HasSubstr("no HTTP answer came"));
}

TEST(KeptConnectionTest, AServerThatSaysThatItClosesIsTakenAtItsWord) {
  for (const char* header :
       {"Connection: close\r\n", "Connection: Close\r\n", "connection: keep-alive,\tCLOSE\r\n",
        "Connection: keep-alive\r\nConnection: close\r\n"}) {
    ClosingServer server({}, answer(header));
    HttpTransport transport(parse_url(server.url()), HttpOptions());
    get(transport);
    EXPECT_NO_THROW(post(transport)) << header;
    EXPECT_THAT(server.seen(), ElementsAre("G", "P")) << header;
  }
  for (const char* header : {"", "Connection: closed\r\n", "Connection: keep-alive\r\n"}) {
    ClosingServer server({}, answer(header));
    HttpTransport transport(parse_url(server.url()), HttpOptions());
    get(transport);
    post(transport);
    EXPECT_THAT(server.seen(), ElementsAre("GP")) << header;
  }
}

TEST(KeptConnectionTest, BytesWithoutARequestAreNotAnAnswer) {
  const std::string two = answer("", "hi") + answer("", "not asked for");
  ClosingServer server({}, two);
  HttpTransport transport(parse_url(server.url()), HttpOptions());
  EXPECT_EQ(get(transport), "hi");
  EXPECT_EQ(get(transport), "hi");
  EXPECT_THAT(server.seen(), ElementsAre("G", "G"));
}

TEST(KeptConnectionTest, AnAnswerWithoutABodyHasItsStatus) {
  ClosingServer server({}, "HTTP/1.1 204 No Content\r\nRetry-After: 7\r\n\r\n");
  HttpTransport transport(parse_url(server.url()), HttpOptions());
  CollectedBody body;
  const HttpReply reply = transport.get("/x", 0, body);
  EXPECT_EQ(reply.status, 204);
  EXPECT_EQ(reply.retry_after_s, 7u);
}

// A later end would show how long decoding takes, and the caller's work with what was found.
TEST(KeptConnectionTest, OneOfALookUpEndsBeforeItsAnswersAreDecoded) {
  const std::string key =
      *decode_hex(read_vectors("database_keyword.json")["entries"][6]["key"].get<std::string>());
  const ScratchFolder scratch;
  FakeServer fake(ServedDatabase::from_vectors("database_keyword.json"));
  WatchedFakeServer server(fake);
  ClientOptions options;
  options.cache_folder = scratch.path();
  options.thread_count = 1;
  bool has_ended = false;
  options.progress = [&](const ClientProgress& progress) {
    if (progress.stage == ClientStage::kDecodingAnswers) has_ended = server.has_seen_end();
    return true;
  };
  Client client = Client::connect(server.url(), options);
  for (int i = 0; i < 2; ++i) {
    has_ended = false;
    EXPECT_TRUE(client.get(key));
    EXPECT_TRUE(has_ended);
  }
}

class KeptTlsConnectionTest : public testing::Test {
 protected:
  KeptTlsConnectionTest() {
    HttpOptions options;
    options.ca_file = scratch_.path() / "ca.pem";
    certificate_.write(*options.ca_file);
    transport_.emplace(parse_url(server_.url()), options);
  }

  ScratchFolder scratch_;
  const SelfSigned certificate_;
  FakeServer fake_{ServedDatabase::with_noise(1, 1, 0)};
  HttpFakeServer server_{fake_, certificate_};
  std::optional<HttpTransport> transport_;
};

// Errors that the program left in OpenSSL's queue are not the connection's.
TEST_F(KeptTlsConnectionTest, OneServesManyRequests) {
  for (const bool has_errors : {false, true, true}) {
    if (has_errors) ERR_raise(ERR_LIB_USER, 1);
    CollectedBody body;
    EXPECT_EQ(transport_->get("/v1/database", 0, body).status, 200);
  }
  EXPECT_EQ(server_.connection_count(), 1u);
  ERR_clear_error();
}

// TLS has no server names as long as this one, which is 127.0.0.1.
TEST(TlsConnection, NothingIsSentInPlainWhereTheHandshakeCannotBegin) {
  std::string seen;
  {
    RawServer server([&](int connection) { seen += read_head(connection); });
    const std::string port = server.url().substr(server.url().rfind(':'));
    HttpOptions options;
    options.api_key = "secret";
    HttpTransport transport(parse_url("https://0x" + std::string(300, '0') + "7f.0.0.1" + port),
                            options);
    for (int i = 0; i < 2; ++i) {
      CollectedBody body;
      EXPECT_THROW(transport.get("/x", 0, body), InputError);
    }
  }
  EXPECT_EQ(seen, "");
}

// A process that is forked while a request is under way: the connection stays its parent's.
class ForkedRequestTest : public testing::TestWithParam<bool> {
 protected:
  ForkedRequestTest() {
    auto http = std::make_unique<httplib::Server>();
    if (is_secure()) {
      http = std::make_unique<httplib::SSLServer>(certificate_.certificate, certificate_.key);
    }
    http->set_pre_routing_handler([this](const httplib::Request&, httplib::Response&) {
      child_ended_.wait();
      return httplib::Server::HandlerResponse::Unhandled;
    });
    server_ = std::make_unique<HttpFakeServer>(fake_, "", std::move(http));
    certificate_.write(ca_file());
    HttpOptions options;
    options.ca_file = ca_file();
    const std::string scheme = is_secure() ? "https" : "http";
    transport_ = std::make_unique<HttpTransport>(
        parse_url(scheme + "://127.0.0.1:" + std::to_string(server_->port())), options,
        [this] { return keep_waiting(); });
  }

  bool is_secure() const { return GetParam(); }
  std::string ca_file() const { return scratch_.path() / "ca.pem"; }

  // Forks once. The child does not go on with the request, and the parent does once it has ended.
  bool keep_waiting() {
    if (has_forked_) return true;
    has_forked_ = true;
    child_ = fork();
    if (child_ == 0) return false;
    int status = -1;
    waitpid(child_, &status, 0);
    EXPECT_EQ(status, 0);
    ended_.set_value();
    return true;
  }

  int status_of_get() {
    CollectedBody body;
    try {
      return transport_->get("/v1/database", 0, body).status;
    } catch (const CancelledError&) {
      transport_.reset();
      _exit(child_ == 0 ? 0 : 1);
    }
  }

  ScratchFolder scratch_;
  const SelfSigned certificate_;
  FakeServer fake_{ServedDatabase::with_noise(1, 1, 0)};
  std::promise<void> ended_;
  std::shared_future<void> child_ended_{ended_.get_future()};
  bool has_forked_ = false;
  pid_t child_ = -1;
  std::unique_ptr<HttpFakeServer> server_;
  std::unique_ptr<HttpTransport> transport_;
};

INSTANTIATE_TEST_SUITE_P(, ForkedRequestTest, testing::Bool(),
                         [](const auto& of) { return of.param ? "Https" : "Http"; });

TEST_P(ForkedRequestTest, LeavesTheConnectionToTheParent) {
  EXPECT_EQ(status_of_get(), 200);
  EXPECT_EQ(status_of_get(), 200);
  EXPECT_EQ(server_->connection_count(), 1u);
}

}  // namespace
}  // namespace blindfuse
