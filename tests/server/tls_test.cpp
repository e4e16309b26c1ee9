// TLS as clients meet it, with certificates that are made here.
#include "host/server/http/channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <ctime>
#include <memory>
#include <thread>

#include "tests/server/running_server.h"
#include "tests/server/tls_testing.h"
#include "tests/support.h"

namespace blindfuse::server_testing {
namespace {

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
    EXPECT_EQ(TlsClient(url()).ask(query_request(4711)).body, responses(1, 4711));
  }
  std::string hints() const { return hints_of(database_, 0, kShards - 1); }

  // What files are refused with; empty when they are not.
  std::string refusal() const { return refusal_of(certificate(), key()); }
  static std::string refusal_of(const std::string& certificate, const std::string& key) {
    return support::input_error_of([&] { http::TlsCertificate(certificate, key); });
  }
  // Adds a certificate after the first.
  void append_issuer(EVP_PKEY& issuer, long serial, long begin = -3600, long end = 3600) const {
    write_certificate(certificate() + ".issuer", issuer, serial, begin, end);
    std::ofstream(certificate(), std::ios::app) << std::ifstream(certificate() + ".issuer").rdbuf();
  }

  std::shared_ptr<http::TlsCertificate> tls_;
};

TEST_F(Tls, AnswersLookUps) {
  start_tls();
  EXPECT_EQ(url().substr(0, 18), "https://127.0.0.1:");
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    TlsClient client(url(), version);
    EXPECT_EQ(client.ask(query_request(1)).body, responses(1, 1));
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
  ASSERT_GT(queries(kQueries).size(), 16'384u);
  // The end of one request and the beginning of the next within a record.
  const std::string request = binary_request(queries(kQueries)), twice = request + request;
  TlsClient client(url());
  for (size_t at = 0; at < twice.size(); at += 7000) client.send(twice.substr(at, 7000));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(client.receive().body, responses(kQueries));
}

TEST_F(Tls, AnswersPipelinedRequests) {
  start_tls();
  const std::string requests = get_request("/health/live") + query_request(2) +
                               get_request("/nowhere") + get_request("/v1/database");
  TlsClient whole(url());
  whole.send(requests);
  TlsClient bytes(url());  // a record for each
  for (const char c : requests) bytes.send({&c, 1});
  for (TlsClient* client : {&whole, &bytes}) {
    EXPECT_EQ(client->receive().status, 200);
    expect_answer(*client, 2);
    EXPECT_EQ(client->receive().status, 404);
    EXPECT_EQ(client->receive().body, database_.downloads->manifest_text);
  }
}

// The engine has a query while the next request lies within OpenSSL, where no poll sees it.
TEST_F(Tls, GoesOnAfterAnAnswerThatTookLong) {
  start_tls();
  control_->hold();
  TlsClient client(url());
  client.send(query_request(1) + query_request(2) + get_request("/v1/database"));
  control_->wait_for_batches(1);
  control_->release();
  expect_answer(client, 1);
  expect_answer(client, 2);
  EXPECT_EQ(client.receive().body, database_.downloads->manifest_text);
}

// The last record of TLS is unread then.
TEST_F(Tls, DropsQueriesOfClientsThatLeave) {
  start_tls();
  control_->hold();
  TlsClient running(url());
  running.send(query_request(1));
  control_->wait_for_batches(1);
  // TLS 1.3 would send a ticket, and closing with that unread resets the connection.
  TlsClient leaving(url(), TLS1_2_VERSION);
  leaving.send(query_request(2));
  wait_for_queue(1);
  leaving.leave();
  wait_for_metric("blindfuse_queries_total{outcome=\"abandoned\"}", 1);
  control_->release();
  expect_answer(running, 1);
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
    for (const std::string& request : {std::string(), query_request(1).substr(0, 300),
                                       get_request(epoch_path("/hint")), query_request(1)}) {
      TlsClient(url()).send(request);
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
  Clients clients;
  for (int i = 0; i < 20; ++i) {
    clients.emplace_back(url());
    if (i % 2 == 1) clients.back().send(std::string("\x16\x03\x01\x02\x00\x01\x00", 7));
  }
  for (int i = 0; i < 5; ++i) expect_tls_healthy();
  for (auto& client : clients) EXPECT_TRUE(client.is_closed());
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
  using std::filesystem::remove;
  const std::string certificate = this->certificate(), key = this->key();
  const std::pair<std::function<void()>, std::string> troubles[] = {
      {[&] { std::ofstream(certificate) << "nonsense\n"; },
       certificate + ": not a certificate in PEM"},
      {[&] { std::ofstream(key) << "nonsense\n"; }, key + ": not a private key in PEM"},
      {[&] { std::filesystem::resize_file(certificate, 100); }, certificate},
      {[&] { remove(certificate.c_str()); }, "No such file"},
      {[&] { remove(key.c_str()); }, "No such file"},
  };
  for (const auto& [trouble, refused] : troubles) {
    write_pair(1);
    EXPECT_EQ(refusal(), "");
    trouble();
    EXPECT_THAT(refusal(), HasSubstr(refused));
  }
}

TEST_F(Tls, SaysThatTheFilesAreSwapped) {
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
  append_issuer(*own, 2, -kDay, 30 * kDay);
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
  const auto expect_log = [&](long begin, long end, const char* expected) {
    write_certificate(certificate(), *own, 1, begin, end);
    testing::internal::CaptureStdout();
    load();
    EXPECT_THAT(testing::internal::GetCapturedStdout(), testing::ContainsRegex(expected));
  };
  expect_log(-2 * kDay, -kDay, "warning.*the certificate expired on ");
  expect_log(kDay, 2 * kDay, "warning.*the certificate is not valid before ");
  expect_log(-kDay, 13 * kDay + 60, "warning.*the certificate expires on .*; days left: 13");
  expect_log(-kDay, 15 * kDay + 60, "info.*the certificate is valid until .*; days left: 15");
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
  append_issuer(*make_key(), 5);
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
