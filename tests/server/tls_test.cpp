// TLS as clients meet it, with certificates that are made here.
#include "host/server/http/tls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <ctime>
#include <memory>
#include <thread>

#include "tests/publish/builder_testing.h"
#include "tests/server/running_server.h"
#include "tests/server/tls_testing.h"

namespace blindfuse::server_testing {
namespace {

using builder_testing::TemporaryFolder;
using ::testing::HasSubstr;
using ::testing::Not;

class Tls : public RunningServer {
 protected:
  Tls() {
    // As the program does.
    std::signal(SIGPIPE, SIG_IGN);
    write_pair(1);
  }

  std::string certificate() const { return folder_ / "cert.pem"; }
  std::string key() const { return folder_ / "key.pem"; }

  void write_pair(long serial) const { write_certificate_and_key(certificate(), key(), serial); }
  std::shared_ptr<http::TlsCertificate> load() const {
    return std::make_shared<http::TlsCertificate>(certificate(), key());
  }
  void start_tls(const ServerOptions& options = default_options(),
                 const BatchLimits& limits = {.batch_max = 4, .queue_max = 8}) {
    tls_ = load();
    start(options, limits, {}, tls_);
  }
  void expect_tls_healthy() {
    const Numbers query = random_query(4711);
    TlsClient client(url());
    EXPECT_EQ(client.ask(binary_request(pack(query, kQueryBits))).body, expected_response(query));
  }
  std::string hints() const { return hints_of(database_, 0, kShards - 1); }

  // What the two files are refused with; empty when they are not.
  std::string refusal() const {
    try {
      load();
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }

  const TemporaryFolder folder_;
  std::shared_ptr<http::TlsCertificate> tls_;
};

TEST_F(Tls, AnswersLookUps) {
  start_tls();
  EXPECT_EQ(url().substr(0, 18), "https://127.0.0.1:");
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    TlsClient client(url(), version);
    EXPECT_EQ(client.ask(get_request("/v1/database")).body, database_.downloads->manifest_text);
    const Numbers query = random_query(1);
    EXPECT_EQ(client.ask(binary_request(pack(query, kQueryBits))).body, expected_response(query));
    // Many records, and more than a socket takes at once.
    EXPECT_EQ(client.ask(get_request(epoch_path("/hint"))).body, hints());
  }
  EXPECT_THROW(TlsClient(url(), TLS1_1_VERSION), std::runtime_error);
  expect_tls_healthy();
}

TEST_F(Tls, TakesBodiesLargerThanARecord) {
  constexpr size_t kQueries = 64;
  ServerOptions options = default_options();
  options.api.queries_per_request_max = kQueries;
  start_tls(options, {.batch_max = 8, .queue_max = kQueries});
  std::string queries;
  std::string responses;
  for (size_t i = 0; i < kQueries; ++i) {
    queries += pack(random_query(i), kQueryBits);
    responses += expected_response(random_query(i));
  }
  ASSERT_GT(queries.size(), 16'384u);
  TlsClient client(url());
  EXPECT_EQ(client.ask(binary_request(queries)).body, responses);
  // The end of one request and the beginning of the next within a record.
  const std::string twice = binary_request(queries) + binary_request(queries);
  for (size_t at = 0; at < twice.size(); at += 7000) client.send(twice.substr(at, 7000));
  EXPECT_EQ(client.receive().body, responses);
  EXPECT_EQ(client.receive().body, responses);
}

TEST_F(Tls, AnswersPipelinedRequests) {
  start_tls();
  const Numbers query = random_query(2);
  const std::string requests = get_request("/health/live") +
                               binary_request(pack(query, kQueryBits)) + get_request("/nowhere") +
                               get_request("/v1/database");
  TlsClient whole(url());
  whole.send(requests);
  TlsClient bytes(url());  // a record for each
  for (const char c : requests) bytes.send({&c, 1});
  for (TlsClient* client : {&whole, &bytes}) {
    EXPECT_EQ(client->receive().status, 200);
    EXPECT_EQ(client->receive().body, expected_response(query));
    EXPECT_EQ(client->receive().status, 404);
    EXPECT_EQ(client->receive().body, database_.downloads->manifest_text);
  }
}

// The engine has a query while the next request lies within OpenSSL, where no poll sees it.
TEST_F(Tls, GoesOnAfterAnAnswerThatTookLong) {
  start_tls();
  control_->hold();
  TlsClient client(url());
  client.send(binary_request(pack(random_query(1), kQueryBits)) +
              binary_request(pack(random_query(2), kQueryBits)) + get_request("/v1/database"));
  control_->wait_for_batches(1);
  control_->release();
  EXPECT_EQ(client.receive().body, expected_response(random_query(1)));
  EXPECT_EQ(client.receive().body, expected_response(random_query(2)));
  EXPECT_EQ(client.receive().body, database_.downloads->manifest_text);
}

// The last record of TLS is unread then.
TEST_F(Tls, DropsQueriesOfClientsThatLeave) {
  start_tls();
  control_->hold();
  TlsClient running(url());
  running.send(binary_request(pack(random_query(1), kQueryBits)));
  control_->wait_for_batches(1);
  // TLS 1.3 would send a ticket, and closing with that unread resets the connection.
  TlsClient leaving(url(), TLS1_2_VERSION);
  leaving.send(binary_request(pack(random_query(2), kQueryBits)));
  wait_for_queue(1);
  leaving.leave();
  while (metric("blindfuse_queries_total{outcome=\"abandoned\"}") < 1) std::this_thread::yield();
  control_->release();
  EXPECT_EQ(running.receive().body, expected_response(random_query(1)));
  EXPECT_EQ(control_->batches, std::vector<size_t>{1});
}

TEST_F(Tls, SaysWhenItHasFinished) {
  start_tls();
  for (const std::string& request :
       {get_request("/health/live", "Connection: close\r\n"), std::string("nonsense\r\n\r\n"),
        post_request("/nowhere", "text/plain", std::string(100, 'x'))}) {
    TlsClient client(url());
    client.send(request);
    EXPECT_NE(client.receive().status, 0);
    EXPECT_TRUE(client.is_finished()) << request;
  }
}

TEST_F(Tls, ClosesOnThoseWhoSpeakPlainHttp) {
  start_tls();
  for (const std::string& bytes :
       {get_request("/v1/database"), std::string("\r\n"), std::string(100'000, 'x'),
        std::string("\x16\x03\x01\x02\x00nonsense", 13), std::string(5, '\0')}) {
    LoopbackClient client(url());
    client.send(bytes);
    client.finish_sending();
    try {
      client.receive();
      FAIL() << "an answer in the clear";
    } catch (const std::exception&) {
    }
  }
  expect_tls_healthy();
}

TEST_F(Tls, IsNotSpokenOnAPlainPort) {
  start();
  EXPECT_THROW(TlsClient{url()}, std::runtime_error);
  expect_healthy();
}

TEST_F(Tls, SurvivesThoseWhoLeave) {
  start_tls();
  for (int i = 0; i < 5; ++i) {
    LoopbackClient(url()).send(std::string("\x16\x03\x01", 3));
    { TlsClient client(url()); }
    {
      TlsClient client(url());
      client.send(binary_request(pack(random_query(1), kQueryBits)).substr(0, 300));
    }
    {
      TlsClient client(url());
      client.send(get_request(epoch_path("/hint")));
    }
    {
      TlsClient client(url());
      client.send(binary_request(pack(random_query(1), kQueryBits)));
    }
  }
  expect_tls_healthy();
}

// Without a word, within a handshake, and a byte at a time: gone when their time is up, and no
// other client waits for them meanwhile.
TEST_F(Tls, GivesUpOnHandshakesThatStall) {
  ServerOptions options = default_options();
  options.http.threads = 2;
  options.http.timeouts.idle = std::chrono::milliseconds(300);
  options.http.timeouts.head = std::chrono::milliseconds(600);
  start_tls(options);
  std::vector<std::unique_ptr<LoopbackClient>> clients;
  for (int i = 0; i < 20; ++i) {
    clients.push_back(std::make_unique<LoopbackClient>(url()));
    if (i % 2 == 1) clients.back()->send(std::string("\x16\x03\x01\x02\x00\x01\x00", 7));
  }
  for (int i = 0; i < 5; ++i) expect_tls_healthy();
  for (auto& client : clients) EXPECT_TRUE(client->is_closed());
  LoopbackClient slow(url());
  slow.send(std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11));
  bool gone = false;
  for (int i = 0; i < 400 && !gone; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    gone = !slow.send("x");
  }
  EXPECT_TRUE(gone) << "a byte now and then puts off the end";
  expect_tls_healthy();
}

TEST_F(Tls, TakesANewCertificateForNewConnections) {
  start_tls();
  TlsClient before(url());
  EXPECT_EQ(before.serial(), 1);
  write_pair(2);
  EXPECT_EQ(TlsClient(url()).serial(), 1) << "not before it is asked to";
  tls_->reload();
  TlsClient after(url());
  EXPECT_EQ(after.serial(), 2);
  for (TlsClient* client : {&before, &after}) {
    EXPECT_EQ(client->ask(get_request("/v1/database")).body, database_.downloads->manifest_text);
  }
}

TEST_F(Tls, KeepsItsCertificateWhenTheNextIsBad) {
  start_tls();
  const PrivateKey other = make_key();
  const std::vector<std::function<void()>> troubles = {
      [&] { write_key(key(), *other); },
      [&] { std::ofstream(key()) << "nonsense\n"; },
      [&] { std::ofstream(certificate()) << ""; },
      [&] { std::filesystem::remove(certificate()); },
  };
  for (const auto& trouble : troubles) {
    write_pair(7);
    trouble();
    EXPECT_THROW(tls_->reload(), InputError);
    EXPECT_EQ(TlsClient(url()).serial(), 1);
  }
  write_pair(8);
  tls_->reload();
  EXPECT_EQ(TlsClient(url()).serial(), 8);
}

TEST_F(Tls, RefusesFilesThatDoNotBelongTogether) {
  EXPECT_EQ(refusal(), "");
  const PrivateKey other = make_key();
  write_key(key(), *other);
  EXPECT_THAT(refusal(), HasSubstr(key()));
  EXPECT_THAT(refusal(), HasSubstr("of that certificate"));
  const PrivateKey rsa(EVP_RSA_gen(2048), &EVP_PKEY_free);
  write_key(key(), *rsa);
  EXPECT_THAT(refusal(), HasSubstr(key()));
}

TEST_F(Tls, RefusesFilesThatAreNoPem) {
  std::ofstream(certificate()) << "nonsense\n";
  EXPECT_THAT(refusal(), HasSubstr(certificate() + ": not a certificate in PEM"));
  write_pair(1);
  std::ofstream(key()) << "nonsense\n";
  EXPECT_THAT(refusal(), HasSubstr(key() + ": not a private key in PEM"));
  write_pair(1);
  std::filesystem::resize_file(certificate(), 100);
  EXPECT_THAT(refusal(), HasSubstr(certificate()));
  std::filesystem::remove(certificate());
  EXPECT_THAT(refusal(), HasSubstr("No such file"));
  write_pair(1);
  std::filesystem::remove(key());
  EXPECT_THAT(refusal(), HasSubstr("No such file"));
  // The two in the wrong order.
  write_pair(1);
  EXPECT_THROW(http::TlsCertificate(key(), certificate()), InputError);
}

TEST_F(Tls, SaysThatTheFilesAreSwapped) {
  const auto refusal_of = [](const std::string& certificate, const std::string& key) {
    try {
      http::TlsCertificate(certificate, key);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refusal_of(key(), certificate()),
            key() + ": a private key, and not a certificate; were the two files swapped?");
  EXPECT_EQ(refusal_of(certificate(), certificate()),
            certificate() + ": a certificate, and not its private key");
  // One file may hold both.
  std::ofstream(certificate(), std::ios::app) << std::ifstream(key()).rdbuf();
  EXPECT_EQ(refusal_of(certificate(), certificate()), "");
}

// Of the chain, the certificate that expires first counts.
TEST_F(Tls, KnowsWhenItsChainExpires) {
  constexpr long kDay = 24 * 60 * 60;
  const PrivateKey own = make_key();
  write_key(key(), *own);
  const std::time_t before = std::time(nullptr);
  write_certificate(certificate(), *own, 1, -kDay, 100 * kDay);
  const auto tls = load();
  EXPECT_GE(tls->expires_at(), before + 100 * kDay);
  EXPECT_LE(tls->expires_at(), std::time(nullptr) + 100 * kDay);
  write_certificate(certificate() + ".issuer", *own, 2, -kDay, 30 * kDay);
  std::ofstream(certificate(), std::ios::app) << std::ifstream(certificate() + ".issuer").rdbuf();
  tls->reload();
  EXPECT_GE(tls->expires_at(), before + 30 * kDay);
  EXPECT_LE(tls->expires_at(), std::time(nullptr) + 30 * kDay);
  start(default_options(), {}, {}, tls);
  EXPECT_EQ(metric("blindfuse_certificate_expiry_time_seconds"),
            static_cast<double>(tls->expires_at()));
  start();
  EXPECT_EQ(metric("blindfuse_certificate_expiry_time_seconds"), -1) << "without HTTPS";
}

TEST_F(Tls, WarnsOfACertificateThatClientsRefuse) {
  constexpr long kDay = 24 * 60 * 60;
  const PrivateKey own = make_key();
  write_key(key(), *own);
  const auto log_of = [&](long begin, long end) {
    write_certificate(certificate(), *own, 1, begin, end);
    testing::internal::CaptureStdout();
    load();
    return testing::internal::GetCapturedStdout();
  };
  EXPECT_THAT(log_of(-2 * kDay, -kDay),
              testing::ContainsRegex("warning.*the certificate expired on "));
  EXPECT_THAT(log_of(kDay, 2 * kDay),
              testing::ContainsRegex("warning.*the certificate is not valid before "));
  EXPECT_THAT(log_of(-kDay, 13 * kDay + 60),
              testing::ContainsRegex("warning.*the certificate expires on .*; days left: 13"));
  EXPECT_THAT(log_of(-kDay, 15 * kDay + 60),
              testing::ContainsRegex("info.*the certificate is valid until .*; days left: 15"));
}

// Which would keep a server that reads its files again waiting forever.
TEST_F(Tls, RefusesWhatIsNoFile) {
  for (const std::string& path : {certificate(), key()}) {
    write_pair(1);
    EXPECT_EQ(refusal(), "");
    std::filesystem::remove(path);
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    EXPECT_THAT(refusal(), HasSubstr(path));
    std::filesystem::remove(path);
  }
}

// A server sends the certificates that lead to its root, too.
TEST_F(Tls, SendsItsChain) {
  const PrivateKey issuer = make_key();
  write_certificate(certificate() + ".issuer", *issuer, 5);
  std::ofstream(certificate(), std::ios::app) << std::ifstream(certificate() + ".issuer").rdbuf();
  start_tls();
  EXPECT_EQ(TlsClient(url()).chain_length(), 2);
  std::ofstream(certificate(), std::ios::app) << "-----BEGIN CERTIFICATE-----\nAAAA\n";
  EXPECT_THAT(refusal(), HasSubstr(certificate() + ": not a certificate in PEM"));
}

// It is not asked for on a terminal.
TEST_F(Tls, RefusesAKeyWithAPassword) {
  const PrivateKey key = make_key();
  write_key(this->key(), *key, "password");
  write_certificate(certificate(), *key, 1);
  EXPECT_THAT(refusal(), HasSubstr(this->key()));
  EXPECT_THAT(refusal(), HasSubstr("without a password"));
  EXPECT_THAT(refusal(), Not(HasSubstr("\n")));
}

}  // namespace
}  // namespace blindfuse::server_testing
