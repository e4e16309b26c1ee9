#include "host/server/service.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <future>

#include "src/base/errors.h"
#include "tests/server/running_server.h"

namespace blindfuse::server_testing {
namespace {

// An engine whose device has gone.
class LostEngine final : public support::PlainEngine {
 public:
  LostEngine() : PlainEngine(kRows, kColumns) {}
  void multiply(QueryBatch, RowRange, ProductBatch) override {
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

}  // namespace
}  // namespace blindfuse::server_testing
