// The generator of load against the real server.
#include "bench/load/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <blindfuse/errors.h>

#include "bench/load/measurement.h"
#include "src/base/errors.h"
#include "tests/client/self_signed.h"
#include "tests/programs/program_testing.h"

namespace blindfuse::load {
namespace {

using namespace program_testing;
using ::testing::HasSubstr;

class LoadTest : public ::testing::Test {
 protected:
  static constexpr int kKeys = 300;

  // Values name the version.
  static std::string map(const std::string& version) {
    std::string lines;
    for (int i = 0; i < kKeys; ++i) {
      lines += "key " + std::to_string(i) + "\t" + version + std::to_string(i) + "\n";
    }
    return lines;
  }

  void build(const std::string& version,
             const std::vector<std::string>& layout = {"--mode", "hint", "--params", "lwe-1288"}) {
    const std::string input = write_file(folder_ / "map.tsv", map(version));
    std::vector<std::string> command = {kBlindfuse, "build", input, "--output", folder_ / "db"};
    command.insert(command.end(), layout.begin(), layout.end());
    ASSERT_EQ(run(folder_, command).status, 0);
  }

  void SetUp() override {
    build("first ");
    options_.seconds = 0.2;
    options_.warmup_s = 0;
    options_.pool = 12;
    options_.check_every = 2;
    options_.cache = folder_ / "cache";
    options_.expect_file = write_file(folder_ / "expected.tsv", map("first "));
  }

  void serve(const std::vector<std::string>& more = {}) {
    server_.emplace(folder_, folder_ / "db", "127.0.0.1:0", more);
    ASSERT_NE(server_->url(), "") << server_->program().err();
    options_.url = server_->url();
  }

  void serve_tls(std::vector<std::string> more) {
    const SelfSigned certificate;
    options_.ca_file = folder_ / "certificate.pem";
    certificate.write(options_.ca_file);
    FILE* const key_file = std::fopen((folder_ / "key.pem").c_str(), "w");
    PEM_write_PrivateKey(key_file, certificate.key, nullptr, nullptr, 0, nullptr, nullptr);
    std::fclose(key_file);
    more.insert(more.end(), {"--tls-cert", options_.ca_file, "--tls-key", folder_ / "key.pem"});
    serve(more);
    ASSERT_THAT(options_.url, HasSubstr("https://"));
  }

  // Adds what the tests look at.
  static void add(const Window& next, Window& all) {
    all.requests += next.requests;
    all.epoch_changes += next.epoch_changes;
    all.latency.merge(next.latency);
    for (const auto& [kind, count] : next.errors) all.errors[kind] += count;
  }

  // What is counted until `done` of all of it.
  template <class Done>
  static Window counted_until(Load& load, const Done& done) {
    Window all;
    do {
      load.sleep_until(Load::Clock::now() + std::chrono::milliseconds(5));
      add(load.take_window(), all);
    } while (!done(all));
    return all;
  }

  static void expect_right_answers(const Measurement& measured) {
    EXPECT_GT(measured.window.requests, 0u);
    EXPECT_GT(measured.checks.checked, 0u);
    EXPECT_EQ(measured.checks.mismatches, 0u);
    EXPECT_THAT(measured.checks.examples, ::testing::IsEmpty());
    EXPECT_THAT(measured.window.errors, ::testing::IsEmpty());
  }

  const TemporaryFolder folder_;
  Options options_;
  std::optional<RunningServer> server_;
};

TEST_F(LoadTest, ClosedLoopsAreCounted) {
  serve();
  options_.concurrency = 3;
  const Measurement measured = measure(options_);
  expect_right_answers(measured);
  const Window& window = measured.window;
  EXPECT_EQ(window.lookups, window.requests);
  EXPECT_EQ(window.latency.count(), window.requests);
  const auto& figures = measured.figures;
  // Whole bodies, and heads.
  EXPECT_GT(window.bytes_up, window.requests * figures.at("query_bytes").get<uint64_t>());
  EXPECT_GT(window.bytes_down, window.requests * figures.at("response_bytes").get<uint64_t>());
  EXPECT_EQ(figures.at("loop"), "closed");
  EXPECT_EQ(figures.at("connections"), 3);
  EXPECT_EQ(figures.at("lookups"), window.lookups);
  const auto lookups = static_cast<double>(window.lookups);
  EXPECT_NEAR(figures.at("lookups_per_second").get<double>() * window.seconds, lookups,
              1e-6 * lookups);
  EXPECT_LE(figures.at("latency_ms").at("p50").get<double>(),
            figures.at("latency_ms").at("p99").get<double>());
  EXPECT_EQ(figures.at("kind"), "keyword");
}

TEST_F(LoadTest, PackedResponsesOfOneAndTwoLevels) {
  // As many shards as make several groups of the second level.
  for (const std::string levels : {"1", "2"}) {
    build("first ", {"--fresh", "--mode", "packed", "--levels", levels, "--shards", "128"});
    serve();
    options_.concurrency = 2;
    expect_right_answers(measure(options_));
  }
}

TEST_F(LoadTest, RequestsForSeveralKeys) {
  build("first ", {"--fresh", "--keys-per-request", "4"});
  serve();
  options_.concurrency = 2;
  options_.check_every = 1;
  const Measurement measured = measure(options_);
  expect_right_answers(measured);
  const Window& window = measured.window;
  // The keys of the file are different, and each has a bucket or is left out.
  EXPECT_EQ(window.lookups + window.left_out, 4 * window.requests);
  EXPECT_GT(window.lookups, window.left_out);
  EXPECT_EQ(measured.figures.at("keys_per_request"), 4);
  EXPECT_EQ(measured.figures.at("left_out"), window.left_out);
}

TEST_F(LoadTest, LatencyInAnOpenLoopCountsFromTheArrival) {
  serve();
  options_.rate = 1000;
  options_.connections = 1;
  Load load(options_);
  load.start();
  counted_until(load, [](const Window& all) { return all.requests > 0; });
  server_->program().send(SIGSTOP);
  const auto time_of_waiting = [&load](uint64_t count) {
    while (load.take_window().waiting <= count) {
      load.sleep_until(Load::Clock::now() + std::chrono::milliseconds(5));
    }
    return Load::Clock::now();
  };
  constexpr uint64_t kEarly = 100;
  const auto early = time_of_waiting(kEarly);
  const auto late = time_of_waiting(2 * kEarly);
  server_->program().send(SIGCONT);
  const Window answered =
      counted_until(load, [](const Window& all) { return all.requests > 2 * kEarly; });
  const auto count = static_cast<double>(answered.requests);
  const std::chrono::duration<double, std::milli> waited = late - early;
  EXPECT_GE(answered.latency.percentile_ms((count - kEarly + 1) / count), waited.count());
  EXPECT_EQ(load.stop().mismatches, 0u);
}

TEST_F(LoadTest, ARequestWithoutAnAnswerIsGivenUp) {
  serve();
  options_.timeout_s = 1;
  Load load(options_);
  server_->program().send(SIGSTOP);
  load.start();
  const Window window = counted_until(load, [](const Window& all) { return !all.errors.empty(); });
  EXPECT_EQ(window.errors.begin()->first, "connection");
  server_->program().send(SIGCONT);
  counted_until(load, [](const Window& all) { return all.requests > 0; });
}

TEST_F(LoadTest, WrongValuesAreMismatches) {
  serve();
  options_.expect_file = write_file(folder_ / "wrong.tsv", "key 0\tanother\nno key\tvalue\n");
  const Measurement measured = measure(options_);
  EXPECT_GT(measured.checks.checked, 0u);
  EXPECT_EQ(measured.checks.mismatches, measured.checks.checked);
  ASSERT_THAT(measured.checks.examples, ::testing::Not(::testing::IsEmpty()));
  EXPECT_THAT(measured.checks.examples[0],
              HasSubstr("key 'key 0': expected the value of the file"));
  EXPECT_FALSE(report_trouble(measured));
}

TEST_F(LoadTest, TlsAndApiKeys) {
  const ProgramResult made =
      run(folder_, {kBlindfuse, "api-key", "test", "--file", folder_ / "keys"});
  ASSERT_EQ(made.status, 0) << made.err;
  serve_tls({"--api-keys", folder_ / "keys"});
  EXPECT_THROW(measure(options_), ServerError) << "without the key";
  options_.api_key_file = write_file(folder_ / "key", made.out);
  expect_right_answers(measure(options_));
  options_.ca_file.clear();
  EXPECT_THROW(measure(options_), ConnectionError) << "without trust";
}

TEST_F(LoadTest, EveryAddressIsAClient) {
  serve({"--client-queries-per-minute-max", "2"});
  for (const char* from : {"127.0.0.2", "127.0.0.3"}) {
    options_.from = from;
    Load load(options_);
    load.start();
    const Window window =
        counted_until(load, [](const Window& all) { return all.errors.contains("429"); });
    EXPECT_EQ(window.requests, 2u) << from;
    load.stop();
  }
}

TEST_F(LoadTest, AnEpochThatIsGoneIsFollowedByTheNext) {
  serve({"--grace-seconds", "0", "--watch-seconds", "0"});
  options_.expect_file.clear();
  options_.concurrency = 4;
  options_.epoch_changes = true;
  Load load(options_);
  load.start();
  counted_until(load, [](const Window& all) { return all.requests > 0; });
  build("second ");
  server_->program().send(SIGHUP);
  counted_until(load, [](const Window& all) { return all.epoch_changes == 1; });
  counted_until(load, [](const Window& all) { return all.requests > 0; });
  const CheckResult checks = load.stop();
  EXPECT_GT(checks.checked, 0u);
  EXPECT_EQ(checks.mismatches, 0u);
}

}  // namespace
}  // namespace blindfuse::load
