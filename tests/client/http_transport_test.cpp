#include "client/http_transport.h"

#include <blindfuse/client.h>
#include <blindfuse/errors.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <future>
#include <set>
#include <thread>

#include "client/url.h"
#include "src/system/file.h"
#include "tests/client/http_fake_server.h"
#include "tests/client/raw_server.h"
#include "tests/client/scratch_folder.h"
#include "tests/client/self_signed.h"

namespace blindfuse {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

struct CollectedBody : BodyReceiver {
  Bytes bytes;
  void begin(int, std::optional<uint64_t>) override {}
  void receive(std::span<const uint8_t> more) override {
    bytes.insert(bytes.end(), more.begin(), more.end());
  }
};

class HttpTransportTest : public testing::Test {
 protected:
  ScratchFolder scratch_;
  FakeServer fake_{ServedDatabase::from_vectors("database_keyword.json")};
  const nlohmann::json entry_ = read_vectors("database_keyword.json")["entries"][10];
  const std::string key_ = *decode_hex(entry_["key"].get<std::string>());
  const std::string value_ = *decode_hex(entry_["value"].get<std::string>());

  Client connect(const std::string& url, ClientOptions options = {}) {
    options.cache_folder = scratch_.path();
    options.thread_count = 1;
    return Client::connect(url, std::move(options));
  }

  // What connecting to the URL throws, as text.
  template <class Error>
  std::string failure(const std::string& url, ClientOptions options = {}) {
    try {
      connect(url, std::move(options));
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing was thrown";
  }
};

TEST_F(HttpTransportTest, LooksUpOverHttp) {
  HttpFakeServer server(fake_);
  Client client = connect(server.url());
  EXPECT_EQ(client.get(key_), value_);
  EXPECT_EQ(client.get("no such key"), std::nullopt);
  for (const auto& [name, text] : server.last_headers()) {
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
  HttpFakeServer server(fake_);
  ClientOptions options;
  options.progress = [](const ClientProgress& progress) {
    return progress.stage != ClientStage::kFetchingHints || progress.done < 5000;
  };
  EXPECT_THROW(connect(server.url(), options).sync(), CancelledError);
  Client client = connect(server.url());
  client.sync();
  const SeenRequest again = fake_.seen("/hint?").at(1);
  EXPECT_GE(again.first_byte, 5000u);
  EXPECT_EQ(client.get(key_), value_);
}

TEST_F(HttpTransportTest, ABusyServerAndARetiredEpochAreMastered) {
  HttpFakeServer server(fake_);
  Client client = connect(server.url());
  fake_.errors = {FakeServer::error(503, "queue full", 0), FakeServer::error(410, "retired")};
  EXPECT_EQ(client.get(key_), value_);
  EXPECT_EQ(fake_.count("/queries"), 3u);
}

TEST_F(HttpTransportTest, TheServersWordsAreShown) {
  HttpFakeServer server(fake_);
  Client client = connect(server.url());
  fake_.errors = {FakeServer::error(500, "the engine is on fire")};
  try {
    client.get(key_);
    FAIL();
  } catch (const ServerError& refusal) {
    EXPECT_EQ(refusal.status(), 500);
    EXPECT_THAT(refusal.what(), HasSubstr("the engine is on fire"));
  }
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

TEST_F(HttpTransportTest, AServerOfAnotherKindIsNamed) {
  fake_.alter_body = [](Bytes& body) { body = reference_pir::bytes_of("<html>hello</html>"); };
  HttpFakeServer server(fake_);
  EXPECT_THAT(failure<ProtocolError>(server.url()), HasSubstr("not a manifest"));
}

TEST_F(HttpTransportTest, AStatusWithoutABodyIsNamed) {
  const RawServer server("HTTP/1.1 204 No Content\r\n\r\n");
  EXPECT_THAT(failure<ProtocolError>(server.url()), HasSubstr("with status 204;"));
}

TEST_F(HttpTransportTest, AnEndlessManifestIsCutOff) {
  auto http = std::make_unique<httplib::Server>();
  http->Get("/v1/database", [](const httplib::Request&, httplib::Response& response) {
    response.set_chunked_content_provider("application/json", [](size_t, httplib::DataSink& sink) {
      const std::string spaces(10'000, ' ');
      return sink.write(spaces.data(), spaces.size());
    });
  });
  HttpFakeServer server(fake_, "", std::move(http));
  EXPECT_THAT(failure<ProtocolError>(server.url()), HasSubstr("65536"));
}

TEST_F(HttpTransportTest, AnEndlessErrorIsCutOff) {
  auto http = std::make_unique<httplib::Server>();
  http->Get("/v1/database", [](const httplib::Request&, httplib::Response& response) {
    response.status = 500;
    response.set_chunked_content_provider("text/plain", [](size_t, httplib::DataSink& sink) {
      const std::string spaces(10'000, ' ');
      return sink.write(spaces.data(), spaces.size());
    });
  });
  HttpFakeServer server(fake_, "", std::move(http));
  EXPECT_THAT(failure<ServerError>(server.url()), HasSubstr("500"));
}

TEST_F(HttpTransportTest, AServerThatHangsIsGivenUp) {
  auto http = std::make_unique<httplib::Server>();
  http->Get("/v1/database", [](const httplib::Request&, httplib::Response&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  });
  HttpFakeServer server(fake_, "", std::move(http));
  ClientOptions options;
  options.http.timeout = std::chrono::seconds(1);
  EXPECT_THAT(failure<ConnectionError>(server.url(), options),
              HasSubstr("the call to " + server.url() + " was not done in 1 s; allow more with"));
}

TEST_F(HttpTransportTest, AConnectionThatTheServerClosedWhenIdleIsOpenedAgain) {
  HttpFakeServer server(fake_);
  Client client = connect(server.url());
  client.sync();
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  EXPECT_EQ(client.get(key_), value_);
}

TEST_F(HttpTransportTest, AServerThatStoppedIsAnError) {
  auto server = std::make_unique<HttpFakeServer>(fake_);
  Client client = connect(server->url());
  client.sync();
  server.reset();
  EXPECT_THROW(client.get(key_), ConnectionError);
}

TEST_F(HttpTransportTest, AServerThatHangsUpWhileItIsSentToKillsNobody) {
  // As in a program that does nothing about the signal.
  const auto before = std::signal(SIGPIPE, SIG_DFL);
  const FileDescriptor listener(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* const any_address = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(bind(listener.get(), any_address, length), 0);
  ASSERT_EQ(listen(listener.get(), 1), 0);
  ASSERT_EQ(getsockname(listener.get(), any_address, &length), 0);
  std::thread server([&] {
    const FileDescriptor connection(accept(listener.get(), nullptr, nullptr));
    // The client is in the middle of its body. Closing in good order first, and then with bytes
    // unread, is what makes its next write raise the signal.
    Bytes beginning(1 << 20);
    EXPECT_EQ(recv(connection.get(), beginning.data(), beginning.size(), MSG_WAITALL), 1 << 20);
    shutdown(connection.get(), SHUT_WR);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  });
  HttpTransport transport(parse_url("http://127.0.0.1:" + std::to_string(ntohs(address.sin_port))),
                          HttpOptions());
  CollectedBody ignored;
  const Bytes body(32 << 20);
  EXPECT_THROW(transport.post("/v1/x", body, ignored), ConnectionError);
  server.join();
  std::signal(SIGPIPE, before);
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
  std::set<int> ports;
  auto http = std::make_unique<httplib::Server>();
  http->set_keep_alive_max_count(100);
  http->set_pre_routing_handler([&](const httplib::Request& request, httplib::Response&) {
    ports.insert(request.remote_port);
    return httplib::Server::HandlerResponse::Unhandled;
  });
  HttpFakeServer server(fake_, "", std::move(http));
  Client client = connect(server.url());
  const std::vector<std::string> keys(2 * kQueriesPerRequest + 1, key_);
  EXPECT_EQ(client.get_many(keys).back(), value_);
  EXPECT_EQ(fake_.count("/queries"), 3u);
  EXPECT_EQ(ports.size(), 1u);
  EXPECT_EQ(client.get(key_), value_);
  EXPECT_EQ(ports.size(), 2u);
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

TEST_F(HttpTransportTest, WaitingForAnAnswerCanBeStopped) {
  auto http = std::make_unique<httplib::Server>();
  std::promise<void> asked;
  std::promise<void> stopped;
  http->set_pre_routing_handler([&](const httplib::Request& request, httplib::Response&) {
    if (request.method == "POST") {
      asked.set_value();
      stopped.get_future().wait();
    }
    return httplib::Server::HandlerResponse::Unhandled;
  });
  HttpFakeServer server(fake_, "", std::move(http));
  Client client = connect(server.url());
  std::stop_source stop;
  auto answer = std::async(std::launch::async, [&] { return client.get(key_, stop.get_token()); });
  asked.get_future().wait();
  stop.request_stop();
  EXPECT_THROW(answer.get(), CancelledError);
  stopped.set_value();
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

TEST_F(HttpTransportTest, AChildProcessLeavesTheConnectionAlone) {
  std::set<int> ports;
  auto http = std::make_unique<httplib::Server>();
  http->set_keep_alive_max_count(100);
  http->set_pre_routing_handler([&](const httplib::Request& request, httplib::Response&) {
    ports.insert(request.remote_port);
    return httplib::Server::HandlerResponse::Unhandled;
  });
  HttpFakeServer server(fake_, "", std::move(http));
  auto client = std::make_unique<Client>(connect(server.url()));
  client->sync();
  const pid_t child = fork();
  if (child == 0) {
    client.reset();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(client->get(key_), value_);
  EXPECT_EQ(ports.size(), 1u) << "the parent had to connect anew";
}

TEST_F(HttpTransportTest, OptionsThatCannotBeAreRefused) {
  ClientOptions options;
  options.http.timeout = std::chrono::seconds::max();
  EXPECT_THAT(failure<InputError>("http://127.0.0.1:9", options), HasSubstr("http.timeout"));
  options.http.timeout = std::chrono::seconds(0);
  EXPECT_THAT(failure<InputError>("http://127.0.0.1:9", options), HasSubstr("http.timeout"));
  options = {};
  options.http.api_key = "key\n";
  EXPECT_THAT(failure<InputError>("http://127.0.0.1:9", options), HasSubstr("http.api_key"));
}

// A program whose text is empty by mistake must not lose a check.
TEST_F(HttpTransportTest, AnOptionThatIsEmptyIsRefused) {
  HttpFakeServer server(fake_);
  ClientOptions options;
  options.http.api_key = "";
  EXPECT_THAT(failure<InputError>(server.url(), options), HasSubstr("http.api_key"));
  options = {};
  options.http.ca_file = "";
  EXPECT_THAT(failure<InputError>(server.url(), options), HasSubstr("http.ca_file is empty"));
  options = {};
  options.server_key = "";
  EXPECT_THAT(failure<InputError>(server.url(), options), HasSubstr("is not a public key"));
  options = {};
  options.mode = "";
  EXPECT_THAT(failure<InputError>(server.url(), options), HasSubstr("mode is \"\""));
  EXPECT_EQ(fake_.count("/v1/database"), 0u);
}

TEST_F(HttpTransportTest, ANumberIsNoKeyOfAKeywordDatabase) {
  HttpFakeServer server(fake_);
  Client client = connect(server.url());
  const std::vector<uint64_t> entries = {5};
  EXPECT_THROW(client.look_up(entries), InputError);
  EXPECT_THROW(client.get(uint64_t{5}), InputError);
  EXPECT_EQ(fake_.count("/queries"), 0u);
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
  HttpFakeServer server(
      fake_, "", std::make_unique<httplib::SSLServer>(self_signed.certificate, self_signed.key));
  const std::string url = "https://127.0.0.1:" + std::to_string(server.port());
  EXPECT_THAT(failure<ConnectionError>(url), HasSubstr("--ca-file"));
  ClientOptions options;
  options.http.ca_file = scratch_.path() / "ca.pem";
  EXPECT_THAT(failure<InputError>(url, options), HasSubstr("ca.pem"));
  std::ofstream(*options.http.ca_file) << "no certificate";
  EXPECT_THAT(failure<InputError>(url, options), HasSubstr("holds none in the format PEM"));
  self_signed.write(*options.http.ca_file);
  EXPECT_EQ(connect(url, options).get(key_), value_);
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
  HttpFakeServer server(
      fake_, "", std::make_unique<httplib::SSLServer>(server_own.certificate, server_own.key));
  ClientOptions options;
  const std::filesystem::path file = scratch_.path() / "ca.pem";
  options.http.ca_file = file.string();
  server_own.write(file);
  EXPECT_EQ(connect("https://127.0.0.1:" + std::to_string(server.port()), options).get(key_),
            value_);
  authority.write(file);
  EXPECT_THAT(
      failure<ConnectionError>("https://127.0.0.1:" + std::to_string(server.port()), options),
      HasSubstr("is not trusted"));
}

TEST_F(HttpTransportTest, AFileOfCertificatesHasToBeThereWithoutTlsToo) {
  HttpFakeServer server(fake_);
  ClientOptions options;
  options.http.ca_file = scratch_.path() / "none.pem";
  EXPECT_THAT(failure<InputError>(server.url(), options), HasSubstr("none.pem"));
}

TEST_F(HttpTransportTest, ACertificateForAnotherNameIsToldFromOneThatIsNotTrusted) {
  const SelfSigned self_signed("DNS:elsewhere.example");
  const SelfSigned other;
  HttpFakeServer server(
      fake_, "", std::make_unique<httplib::SSLServer>(self_signed.certificate, self_signed.key));
  const std::string url = "https://127.0.0.1:" + std::to_string(server.port());
  ClientOptions options;
  options.http.ca_file = scratch_.path() / "ca.pem";
  self_signed.write(*options.http.ca_file);
  EXPECT_THAT(failure<ConnectionError>(url, options), HasSubstr("is for another name"));
  other.write(*options.http.ca_file);
  EXPECT_THAT(failure<ConnectionError>(url, options),
              AllOf(HasSubstr("is not trusted"), HasSubstr("the file named with --ca-file")));
}

}  // namespace
}  // namespace blindfuse
