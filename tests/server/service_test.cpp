#include "host/server/service.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <future>

#include "src/base/errors.h"
#include "tests/publish/builder_testing.h"
#include "tests/server/running_server.h"

namespace blindfuse::server_testing {
namespace {

// An engine whose device has gone.
class LostEngine final : public support::PlainEngine {
 public:
  LostEngine() : PlainEngine(kRows, kColumns) {}
  void multiply_columns(QueryBatch, RowRange, ColumnRange, ProductBatch) override {
    throw DeviceLostError("cuda/file.cpp:12: cudaCall() failed: cudaErrorX");
  }
};

// Until the service is ready; throws what it throws before that.
std::string wait_for_url(const std::filesystem::path& ready_file, std::future<void>& service) {
  std::string url;
  while (!std::getline(std::ifstream(ready_file), url)) {
    if (service.wait_for(std::chrono::milliseconds(1)) == std::future_status::ready) service.get();
  }
  return url;
}

// Its queries get 503, and the service ends with an error rather than serve on without an engine.
TEST(Service, EndsWhenItsEngineIsLost) {
  const auto ready =
      std::filesystem::temp_directory_path() / ("blindfuse-service-" + std::to_string(getpid()));
  LoadedDatabase database = tiny_database(std::make_unique<LostEngine>());
  const std::string path = "/v1/epochs/" + database.epoch + "/queries";
  auto service = std::async(std::launch::async, [&] {
    Signals signals;
    ServiceOptions options;
    options.ready_file = ready;
    serve_until_stopped({.database = std::move(database),
                         .socket = http::ListeningSocket({}),
                         .admin_socket = {},
                         .tls = {},
                         .api_keys = {},
                         .loader = {}},
                        options, signals);
  });
  const std::string url = wait_for_url(ready, service);
  const HttpResponse response = LoopbackClient(url).ask(
      post_request(path, "application/octet-stream", pack(random_query(1), kQueryBits)));
  EXPECT_EQ(response.status, 503);
  EXPECT_EQ(response.problem(), "engine-failed");
  EXPECT_THROW(service.get(), DeviceLostError);
  EXPECT_FALSE(std::filesystem::exists(ready));
}

// What is served is on the same device: nothing waits until a query finds out.
TEST(Service, EndsWhenTheDeviceIsLostWhileAnEpochLoads) {
  const builder_testing::TemporaryFolder folder;
  // Another epoch than the one that is served, which the reloader's first look finds.
  builder_testing::build({{"key", "value"}}, folder / "db", {});
  auto service = std::async(std::launch::async, [&] {
    Signals signals;
    ServiceOptions options;
    options.reload.directory = folder / "db";
    serve_until_stopped(
        {.database = tiny_database(support::PlainEngine::make(kRows, kColumns)),
         .socket = http::ListeningSocket({}),
         .admin_socket = {},
         .tls = {},
         .api_keys = {},
         .loader = [](const LoadedDatabase&, const std::function<void()>&) -> LoadedDatabase {
           throw DeviceLostError("cuda/file.cpp:12: cudaCall() failed: cudaErrorX");
         }},
        options, signals);
  });
  EXPECT_THROW(service.get(), DeviceLostError);
}

}  // namespace
}  // namespace blindfuse::server_testing
