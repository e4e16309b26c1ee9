// What operators see, against what clients did.
#include "host/server/serving/server_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <set>

#include "tests/server/running_server.h"

namespace blindfuse::server_testing {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

// Name and labels as they are written, with the value.
using Series = std::map<std::string, double>;

// Without what Prometheus adds to the name of a histogram.
std::string plain_name(const std::string& name) {
  for (const std::string_view end : {"_bucket", "_sum", "_count"}) {
    if (name.ends_with(end)) return name.substr(0, name.size() - end.size());
  }
  return name;
}

// Every line must be what Prometheus's text format allows.
Series parse(const std::string& text) {
  const auto comment =
      MatchesRegex("# (HELP [a-z_]+ [ -~]+|TYPE [a-z_]+ (counter|gauge|histogram))");
  const auto sample = MatchesRegex(
      "[a-z_]+(\\{[a-z]+=\"[^\"\\]*\"(,[a-z]+=\"[^\"\\]*\")*\\})? ([0-9.e+-]+|\\+Inf)");
  Series series;
  std::set<std::string> typed;
  EXPECT_TRUE(text.ends_with('\n'));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) {
      EXPECT_THAT(line, comment);
      if (line.starts_with("# TYPE ")) {
        EXPECT_TRUE(typed.insert(line.substr(7, line.find(' ', 7) - 7)).second) << line;
      }
      continue;
    }
    EXPECT_THAT(line, sample);
    const std::string name = line.substr(0, line.find_first_of("{ "));
    EXPECT_TRUE(typed.contains(name) || typed.contains(plain_name(name))) << line << " has no type";
    const size_t space = line.rfind(' ');
    if (space == std::string::npos) continue;
    EXPECT_TRUE(series.emplace(line.substr(0, space), std::strtod(&line[space], nullptr)).second)
        << line << " is there twice";
  }
  return series;
}

class Metrics : public RunningServer {
 protected:
  Series series() { return parse(metrics_text()); }
};

TEST_F(Metrics, AreThereFromTheBeginning) {
  start();
  const Series now = series();
  for (const char* outcome : {"answered", "queue_full", "over_quota", "timed_out", "abandoned",
                              "engine_failed", "stopping"}) {
    const std::string name = "blindfuse_queries_total{outcome=\"" + std::string(outcome) + "\"}";
    ASSERT_TRUE(now.contains(name)) << name;
    EXPECT_EQ(now.at(name), 0);
  }
  for (const char* result : {"success", "failure"}) {
    EXPECT_EQ(now.at("blindfuse_epoch_loads_total{result=\"" + std::string(result) + "\"}"), 0);
  }
  EXPECT_EQ(now.at("blindfuse_http_connections"), 0);
  EXPECT_EQ(now.at("blindfuse_queue_length"), 0);
  EXPECT_EQ(now.at("blindfuse_epochs"), 1);
  EXPECT_EQ(now.at("blindfuse_keys"), 200);
  EXPECT_EQ(now.at("blindfuse_engine_failures_total"), 0);
  EXPECT_EQ(now.at("blindfuse_database_bytes{part=\"matrix\"}"), kRows * kColumns);
  EXPECT_EQ(now.at("blindfuse_database_bytes{part=\"hint\"}"),
            static_cast<double>(database_.manifest.layout.hint_bytes()));
  EXPECT_EQ(now.at("blindfuse_database_bytes{part=\"packing_tables\"}"), 0);
  EXPECT_EQ(now.at("blindfuse_epoch_info{engine=\"plain\",epoch=\"" + database_.epoch + "\"}"), 1);
  EXPECT_GT(now.at("process_resident_memory_bytes"), 1e6);
  EXPECT_GT(now.at("process_open_fds"), 3);
  EXPECT_GE(now.at("process_max_fds"), now.at("process_open_fds"));
  EXPECT_GT(now.at("process_start_time_seconds"), 1.7e9);
}

TEST_F(Metrics, TellOfADeviceThatIsSetAside) {
  const ServedEpochs epochs(tiny_epoch());
  ServerMetrics metrics;
  EXPECT_EQ(parse(metrics.text(epochs)).at("blindfuse_gpu_set_aside"), 0);
  metrics.set_device_set_aside(true);
  EXPECT_EQ(parse(metrics.text(epochs)).at("blindfuse_gpu_set_aside"), 1);
}

TEST_F(Metrics, CountRequestsAndTheirBytes) {
  start();
  LoopbackClient client(url());
  uint64_t received = 0;
  const auto send = [&](const std::string& request, int status) {
    received += request.size();
    client.send(request);
    EXPECT_EQ(client.receive().status, status);
  };
  send(get_request("/v1/database"), 200);
  send(get_request("/v1/database"), 200);
  send(get_request("/nowhere"), 404);
  send(binary_request(queries(2)), 200);
  send(get_request(epoch_path("/shards")), 200);
  // What was sent: bodies, and headers of a size that is not known here. The client may have the
  // last of it before the server has counted it.
  const uint64_t sent = 2 * database_.downloads->manifest_text.size() + 2 * kResponseBytes +
                        database_.downloads->table.size();
  wait_for_metric("blindfuse_http_sent_bytes_total", static_cast<double>(sent + 1));
  const Series now = series();
  const auto requests = [&](const std::string& route, int status) {
    const std::string name = "blindfuse_http_requests_total{route=\"" + route + "\",status=\"" +
                             std::to_string(status) + "\"}";
    return now.contains(name) ? now.at(name) : 0;
  };
  EXPECT_EQ(requests("database", 200), 2);
  EXPECT_EQ(requests("none", 404), 1);
  EXPECT_EQ(requests("queries", 200), 1);
  EXPECT_EQ(requests("shards", 200), 1);
  EXPECT_EQ(now.at("blindfuse_http_request_seconds_count{route=\"database\"}"), 2);
  EXPECT_EQ(now.at("blindfuse_http_received_bytes_total"), static_cast<double>(received));
  EXPECT_LT(now.at("blindfuse_http_sent_bytes_total"), static_cast<double>(sent + 5 * 600));
  EXPECT_EQ(now.at("blindfuse_queries_total{outcome=\"answered\"}"), 2);
  EXPECT_EQ(now.at("blindfuse_queue_wait_seconds_count"), 2);
}

TEST_F(Metrics, CountBatchesByTheirSize) {
  start();
  Clients clients;
  send_held(clients, 0);
  for (uint64_t i = 1; i < 4; ++i) send_waiting(clients, i, i);
  EXPECT_EQ(series().at("blindfuse_queue_length"), 3);
  control_->release();
  for (auto& client : clients) EXPECT_EQ(client.receive().status, 200);
  // An answer may be faster than its batch's end.
  wait_for_metric("blindfuse_batch_queries_count", 2);
  const Series now = series();
  EXPECT_EQ(control_->batches, (std::vector<size_t>{1, 3}));
  EXPECT_EQ(now.at("blindfuse_batch_queries_bucket{le=\"1\"}"), 1);
  EXPECT_EQ(now.at("blindfuse_batch_queries_bucket{le=\"2\"}"), 1);
  EXPECT_EQ(now.at("blindfuse_batch_queries_bucket{le=\"3\"}"), 2);
  EXPECT_EQ(now.at("blindfuse_batch_queries_bucket{le=\"+Inf\"}"), 2);
  EXPECT_EQ(now.at("blindfuse_batch_queries_sum"), 4);
  EXPECT_EQ(now.at("blindfuse_batch_seconds_count"), 2);
}

TEST_F(Metrics, CountWhatBecameOfQueries) {
  ServerOptions options = default_options();
  options.api.queries_per_request_max = 2;
  start(options, {.batch_max = 1, .queue_max = 2});
  control_->fail(true);
  EXPECT_EQ(ask(query_request(1)).status, 503);
  control_->fail(false);
  Clients clients;
  send_held(clients, 1);
  send_waiting(clients, 1, 1);
  EXPECT_EQ(ask(binary_request(queries(2))).problem(), "busy");
  control_->release();
  for (auto& client : clients) EXPECT_EQ(client.receive().status, 200);
  EXPECT_EQ(ask(binary_request("malformed")).status, 400);
  const Series now = series();
  EXPECT_EQ(now.at("blindfuse_queries_total{outcome=\"engine_failed\"}"), 1);
  EXPECT_EQ(now.at("blindfuse_queries_total{outcome=\"queue_full\"}"), 2);
  EXPECT_EQ(now.at("blindfuse_queries_total{outcome=\"answered\"}"), 2);
  EXPECT_EQ(now.at("blindfuse_engine_failures_total"), 1);
  EXPECT_EQ(now.at("blindfuse_http_requests_total{route=\"queries\",status=\"503\"}"), 2);
}

// Else whoever asks for a million paths fills the server's memory, and whoever asks for a line feed
// writes metrics of his own.
TEST_F(Metrics, HaveNoWordsOfClients) {
  start();
  const auto misbehave = [&](int i) {
    const std::string word = "word" + std::to_string(i);
    for (const std::string& request :
         {get_request("/" + word), get_request("/v1/epochs/" + word + "/hint"),
          get_request("/v1/epochs/" + word + "/" + word),
          get_request("/v1/database?" + word + "=1"), get_request("/v1/database", "", word),
          get_request("/" + word + "%0a%22", "", "PATCH"),
          get_request(epoch_path("/hint?shards=" + word)),
          get_request("/v1/database",
                      "X-" + word + ": " + word + "\r\nUser-Agent: " + word + "\r\n"),
          post_request(queries_path(), "application/" + word, word),
          get_request("/v1/database", "Origin: " + word + "\r\n", "OPTIONS"),
          "GET /" + word + " HTTP/1.1\r\n\r\n", word + "\r\n\r\n",
          "GET / HTTP/" + std::to_string(i) + ".0\r\nHost: x\r\n\r\n"}) {
      ask(request);
    }
  };
  misbehave(0);
  misbehave(1);  // whose last request is a good one
  const Series few = series();
  for (int i = 2; i < 30; ++i) misbehave(i);
  const Series many = series();
  EXPECT_EQ(many.size(), few.size());
  for (const auto& [name, value] : many) {
    EXPECT_THAT(name, Not(HasSubstr("word")));
    EXPECT_FALSE(std::isnan(value));
  }
  // Its histograms among them, all of the routes and their statuses fit on a page.
  EXPECT_LT(many.size(), 400u);
}

TEST_F(Metrics, FollowTheEpoch) {
  start();
  series();
  LoadedDatabase next = tiny_database();
  next.epoch = EpochId(64, 'e');
  next.manifest.layout.key_count = 7;
  next.published_at = 1'800'000'000;
  serve_next(std::move(next));
  Series now = series();
  EXPECT_EQ(now.at("blindfuse_epochs"), 2);
  EXPECT_EQ(now.at("blindfuse_keys"), 7);
  EXPECT_EQ(now.at("blindfuse_epoch_publish_time_seconds"), 1'800'000'000);
  EXPECT_EQ(now.at("blindfuse_database_bytes{part=\"matrix\"}"), 2 * kRows * kColumns);
  size_t infos = 0;
  for (const auto& [name, value] : now) infos += name.starts_with("blindfuse_epoch_info") ? 1 : 0;
  EXPECT_EQ(infos, 1u) << "one epoch is the current one";
  EXPECT_TRUE(now.contains("blindfuse_epoch_info{engine=\"plain\",epoch=\"" + std::string(64, 'e') +
                           "\"}"));
  // One that a request still holds is counted as long as it is held.
  epochs_->retire(ServedEpochs::Clock::time_point::max());
  EXPECT_EQ(series().at("blindfuse_epochs"), 2);
  epoch_.reset();
  epochs_->retire(ServedEpochs::Clock::time_point::max());
  now = series();
  EXPECT_EQ(now.at("blindfuse_epochs"), 1);
}

}  // namespace
}  // namespace blindfuse::server_testing
