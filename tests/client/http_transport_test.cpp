#include "client/http_transport.h"

#include <blindfuse/client.h>
#include <blindfuse/errors.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <future>
#include <thread>

#include "client/url.h"
#include "tests/client/client_testing.h"
#include "tests/client/http_fake_server.h"
#include "tests/client/look_ups.h"
#include "tests/client/raw_server.h"
#include "tests/client/self_signed.h"

namespace blindfuse {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class HttpTransportTest : public FakeServerTest {
 protected:
  FakeServer& fake_ = server_;
  HttpFakeServer http_{fake_};
  const std::string key_ = key(10);
  const std::string value_ = value(10);

  Client connect(const std::string& url, ClientOptions options = {}) {
    options.cache_folder = scratch_.path();
    options.thread_count = 1;
    return Client::connect(url, std::move(options));
  }

  // What connecting to the URL throws, as text.
  template <class Error>
  std::string failure(const std::string& url, const ClientOptions& options = {}) {
    return message_of<Error>([&] { connect(url, options); });
  }
};

TEST_F(HttpTransportTest, LooksUpOverHttp) {
  Client client = connect(http_.url());
  EXPECT_EQ(client.get(key_), value_);
  EXPECT_EQ(client.get("no such key"), std::nullopt);
  for (const auto& [name, text] : http_.last_headers()) {
    if (name == "Content-Type") {
      EXPECT_EQ(text, "application/octet-stream");
    }
    EXPECT_NE(name, "Cookie");
  }
}

TEST_F(HttpTransportTest, LooksUpUnderAPrefix) {
  HttpFakeServer server(fake_, "/some/words");
  EXPECT_EQ(connect(server.url() + "/").get(key_), value_);
  EXPECT_THAT(failure<ProtocolError>("http://127.0.0.1:" + std::to_string(server.port())),
              HasSubstr("404"));
}

TEST_F(HttpTransportTest, ResumesWithARangeRequest) {
  ClientOptions options;
  options.progress = [](const ClientProgress& progress) {
    return progress.stage != ClientStage::kFetchingHints || progress.done < 5000;
  };
  EXPECT_THROW(connect(http_.url(), options).sync(), CancelledError);
  Client client = connect(http_.url());
  client.sync();
  const SeenRequest again = fake_.seen("/hint?").at(1);
  EXPECT_GE(again.first_byte, 5000u);
  EXPECT_EQ(client.get(key_), value_);
}

TEST_F(HttpTransportTest, NobodyThereNamesTheCure) {
  int port = 0;
  { port = HttpFakeServer(fake_).port(); }
  const std::string url = "http://127.0.0.1:" + std::to_string(port);
  EXPECT_EQ(failure<ConnectionError>(url), "cannot connect to " + url +
                                               ": connection refused; check the port, and that the "
                                               "server runs");
  EXPECT_THAT(failure<ConnectionError>("http://no-such-host.invalid"),
              HasSubstr("check the address"));
}

TEST_F(HttpTransportTest, ABusyServerIsAskedAgainAndTheWordsOfAnErrorAreShown) {
  Client client = connect(http_.url());
  fake_.errors = {FakeServer::error(503, "queue full", 0)};
  EXPECT_EQ(client.get(key_), value_);
  fake_.errors = {FakeServer::error(500, "the engine is on fire")};
  EXPECT_THAT(message_of<ServerError>([&] { client.get(key_); }),
              HasSubstr("status 500: the engine is on fire"));
}

// Manifests and errors.
TEST_F(HttpTransportTest, AnEndlessAnswerIsCutOff) {
  for (const int status : {200, 500}) {
    auto http = std::make_unique<httplib::Server>();
    http->Get("/v1/database", [status](const httplib::Request&, httplib::Response& response) {
      response.status = status;
      response.set_chunked_content_provider("text/plain", [](size_t, httplib::DataSink& sink) {
        const std::string spaces(10'000, ' ');
        return sink.write(spaces.data(), spaces.size());
      });
    });
    HttpFakeServer server(fake_, "", std::move(http));
    const bool is_error = status == 500;
    EXPECT_THAT(
        is_error ? failure<ServerError>(server.url()) : failure<ProtocolError>(server.url()),
        HasSubstr(is_error ? "500" : "65536"));
  }
}

TEST_F(HttpTransportTest, AServerThatHangsUpWhileItIsSentToKillsNobody) {
  // As in a program that does nothing about the signal.
  const auto before = std::signal(SIGPIPE, SIG_DFL);
  {
    const RawServer server([](int connection) {
      // The client is in the middle of its body. Closing in good order first, and then with bytes
      // unread, is what makes its next write raise the signal.
      Bytes beginning(1 << 20);
      EXPECT_EQ(recv(connection, beginning.data(), beginning.size(), MSG_WAITALL), 1 << 20);
      shutdown(connection, SHUT_WR);
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    });
    HttpTransport transport(parse_url(server.url()), HttpOptions());
    CollectedBody ignored;
    EXPECT_THROW(transport.post("/v1/x", Bytes(32 << 20), ignored), ConnectionError);
  }
  std::signal(SIGPIPE, before);
}

volatile std::sig_atomic_t sigpipe_count = 0;

// A server that hangs up over TLS, where OpenSSL writes to the socket. The signal is counted and
// does not end the test.
class TlsHangUpTest : public HttpTransportTest {
 protected:
  TlsHangUpTest() {
    identity_.write(ca_file_);
    SSL_CTX_use_certificate(context_.get(), identity_.certificate);
    SSL_CTX_use_PrivateKey(context_.get(), identity_.key);
    sigpipe_count = 0;
    before_ = std::signal(SIGPIPE, [](int) { sigpipe_count = sigpipe_count + 1; });
  }
  ~TlsHangUpTest() override { std::signal(SIGPIPE, before_); }

  std::unique_ptr<HttpTransport> transport_to(const RawServer& server) const {
    HttpOptions options;
    options.ca_file = ca_file_;
    return std::make_unique<HttpTransport>(parse_url(server.https_url()), options);
  }
  SslPointer accept(int connection) const {
    SslPointer ssl(SSL_new(context_.get()));
    SSL_set_fd(ssl.get(), connection);
    EXPECT_EQ(SSL_accept(ssl.get()), 1);
    return ssl;
  }

  const SelfSigned identity_;
  const std::string ca_file_ = scratch_.path() / "ca.pem";
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_{SSL_CTX_new(TLS_server_method()),
                                                                   SSL_CTX_free};
  void (*before_)(int) = SIG_DFL;
  CollectedBody body_;
};

TEST_F(TlsHangUpTest, RaisesNoSignalInTheMiddleOfABody) {
  const RawServer server([&](int connection) {
    const SslPointer ssl = accept(connection);
    // Closing in good order first, and then with bytes unread, makes the next write fail with
    // EPIPE.
    Bytes beginning(1 << 20);
    EXPECT_EQ(recv(connection, beginning.data(), beginning.size(), MSG_WAITALL), 1 << 20);
    shutdown(connection, SHUT_WR);
  });
  EXPECT_THROW(transport_to(server)->post("/v1/x", Bytes(32 << 20), body_), ConnectionError);
  EXPECT_EQ(sigpipe_count, 0);
}

TEST_F(TlsHangUpTest, RaisesNoSignalWhenTheConnectionIsClosed) {
  std::promise<void> answered;
  auto server = std::make_unique<RawServer>([&](int connection) {
    const SslPointer ssl = accept(connection);
    char first = 0;
    EXPECT_EQ(recv(connection, &first, 1, MSG_PEEK), 1);  // the request, which stays unread
    const std::string_view answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    EXPECT_GT(SSL_write(ssl.get(), answer.data(), static_cast<int>(answer.size())), 0);
    answered.get_future().wait();
    shutdown(connection, SHUT_WR);
  });
  const auto transport = transport_to(*server);
  EXPECT_EQ(transport->get("/v1/x", 0, body_).status, 200);
  answered.set_value();
  server.reset();                 // the server's end is closed
  transport->close_connection();  // sends an alert
  EXPECT_EQ(sigpipe_count, 0);
}

TEST_F(HttpTransportTest, AKeyThatTheServerDoesNotKnowIsToldFromNone) {
  auto http = std::make_unique<httplib::Server>();
  http->Get("/v1/database",
            [](const httplib::Request&, httplib::Response& response) { response.status = 401; });
  HttpFakeServer server(fake_, "", std::move(http));
  EXPECT_THAT(failure<ServerError>(server.url()), HasSubstr("--api-key-file"));
  ClientOptions options;
  options.http.api_key = "abc";
  EXPECT_THAT(failure<ServerError>(server.url(), options),
              HasSubstr("does not know the API key that was sent"));
}

TEST_F(HttpTransportTest, OneConnectionServesTheRequestsOfALookUpAndNoOther) {
  Client client = connect(http_.url());
  const std::vector<std::string> keys(2 * kQueriesPerRequest + 1, key_);
  EXPECT_EQ(client.get_many(keys).back(), value_);
  EXPECT_EQ(fake_.count("/queries"), 3u);
  EXPECT_EQ(http_.connection_count(), 1u);
  EXPECT_EQ(client.get(key_), value_);
  EXPECT_EQ(http_.connection_count(), 2u);
}

TEST_F(HttpTransportTest, RedirectsAreNotFollowed) {
  auto http = std::make_unique<httplib::Server>();
  http->Get("/v1/database", [](const httplib::Request&, httplib::Response& response) {
    response.set_redirect("/elsewhere");
  });
  HttpFakeServer server(fake_, "", std::move(http));
  EXPECT_THAT(failure<ProtocolError>(server.url()),
              AllOf(HasSubstr("302"), HasSubstr("a redirect to /elsewhere")));
  EXPECT_EQ(fake_.requests.size(), 0u);
}

// True a few times.
std::function<bool()> a_little_patience() {
  return [left = std::make_shared<int>(3)] { return --*left > 0; };
}

TEST_F(HttpTransportTest, SendingToAServerThatReadsNothingCanBeStopped) {
  std::promise<void> stopped;
  RawServer server([&](int) { stopped.get_future().wait(); });
  HttpTransport transport(parse_url(server.url()), {}, a_little_patience());
  CollectedBody body;
  EXPECT_THROW(transport.post("/v1/x", Bytes(64 << 20), body), CancelledError);
  stopped.set_value();
}

TEST_F(HttpTransportTest, AnAnswerThatTricklesCanBeStopped) {
  RawServer server([](int connection) {
    std::string head = "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n";
    while (send(connection, head.data(), head.size(), MSG_NOSIGNAL) > 0) {
      head = "x";
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  });
  HttpTransport transport(parse_url(server.url()), {}, a_little_patience());
  CollectedBody body;
  EXPECT_THROW(transport.get("/v1/x", 0, body), CancelledError);
}

// A program whose text is empty by mistake must not lose a check.
TEST_F(HttpTransportTest, OptionsThatCannotBeOrAreEmptyAreRefused) {
  using Change = void (*)(ClientOptions&);
  for (const auto& [change, refusal] : std::vector<std::pair<Change, const char*>>{
           {[](auto& options) { options.http.timeout = std::chrono::seconds::max(); },
            "http.timeout"},
           {[](auto& options) { options.http.timeout = std::chrono::seconds(0); }, "http.timeout"},
           {[](auto& options) { options.http.api_key = "key\n"; }, "http.api_key"},
           {[](auto& options) { options.http.api_key = ""; }, "http.api_key"},
           {[](auto& options) { options.http.ca_file = ""; }, "http.ca_file is empty"},
           {[](auto& options) { options.server_key = ""; }, "is not a public key"},
           {[](auto& options) { options.mode = ""; }, "mode is \"\""}}) {
    ClientOptions options;
    change(options);
    EXPECT_THAT(failure<InputError>(http_.url(), options), HasSubstr(refusal));
  }
  EXPECT_EQ(fake_.count("/v1/database"), 0u);
}

TEST_F(HttpTransportTest, TellsItsCallerThatItWaits) {
  auto http = std::make_unique<httplib::Server>();
  http->set_pre_routing_handler([&](const httplib::Request& request, httplib::Response&) {
    if (request.method == "POST") std::this_thread::sleep_for(std::chrono::milliseconds(300));
    return httplib::Server::HandlerResponse::Unhandled;
  });
  HttpFakeServer server(fake_, "", std::move(http));
  ClientOptions options;
  int waited = 0;
  options.progress = [&](const ClientProgress& progress) {
    waited += progress.stage == ClientStage::kWaitingForAnswer;
    return true;
  };
  EXPECT_EQ(connect(server.url(), options).get(key_), value_);
  EXPECT_GT(waited, 0);
}

TEST_F(HttpTransportTest, HttpsNeedsACertificateThatIsTrusted) {
  const SelfSigned self_signed;
  HttpFakeServer server(fake_, self_signed);
  EXPECT_THAT(failure<ConnectionError>(server.url()), HasSubstr("--ca-file"));
  ClientOptions options;
  options.http.ca_file = scratch_.path() / "ca.pem";
  EXPECT_THAT(failure<InputError>(server.url(), options), HasSubstr("ca.pem"));
  // Without TLS, too.
  EXPECT_THAT(failure<InputError>("http://127.0.0.1:9", options), HasSubstr("ca.pem"));
  std::ofstream(*options.http.ca_file) << "no certificate";
  EXPECT_THAT(failure<InputError>(server.url(), options),
              HasSubstr("holds none in the format PEM"));
  self_signed.write(*options.http.ca_file);
  EXPECT_EQ(connect(server.url(), options).get(key_), value_);
}

// It is neither signed by itself nor by an authority in the file.
TEST_F(HttpTransportTest, TheServersOwnCertificateCanBeTheFileOfCertificates) {
  const SelfSigned authority;
  const SelfSigned server_own;
  X509_NAME* const issuer = X509_NAME_new();
  X509_NAME_add_entry_by_txt(issuer, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("authority"), -1, -1, 0);
  X509_set_issuer_name(server_own.certificate, issuer);
  X509_NAME_free(issuer);
  X509_sign(server_own.certificate, authority.key, EVP_sha256());
  HttpFakeServer server(fake_, server_own);
  ClientOptions options;
  const std::filesystem::path file = scratch_.path() / "ca.pem";
  options.http.ca_file = file.string();
  server_own.write(file);
  EXPECT_EQ(connect(server.url(), options).get(key_), value_);
  authority.write(file);
  EXPECT_THAT(failure<ConnectionError>(server.url(), options), HasSubstr("is not trusted"));
}

TEST_F(HttpTransportTest, ACertificateForAnotherNameIsToldFromOneThatIsNotTrusted) {
  const SelfSigned self_signed("DNS:elsewhere.example");
  const SelfSigned other;
  HttpFakeServer server(fake_, self_signed);
  ClientOptions options;
  options.http.ca_file = scratch_.path() / "ca.pem";
  self_signed.write(*options.http.ca_file);
  EXPECT_THAT(failure<ConnectionError>(server.url(), options), HasSubstr("is for another name"));
  other.write(*options.http.ca_file);
  EXPECT_THAT(failure<ConnectionError>(server.url(), options),
              AllOf(HasSubstr("is not trusted"), HasSubstr("the file named with --ca-file")));
}

}  // namespace
}  // namespace blindfuse
