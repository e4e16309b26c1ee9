#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <iostream>
#include <string>
#include <thread>

#include "host/server/device_end.h"
#include "host/server/service.h"
#include "host/system/device_fault.h"
#include "src/base/errors.h"
#include "tests/server/process_death.h"
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

class ServiceDeathTest : public ProcessDeathTest {
 protected:
  void serve(LoadedDatabase database, const ServiceOptions& options,
             EpochReloader::Loader loader = {}) {
    Signals signals;
    DeviceEnd end(options.ready_file);
    serve_until_stopped({.database = std::move(database),
                         .socket = http::ListeningSocket({}),
                         .admin_socket = {},
                         .tls = {},
                         .api_keys = {},
                         .loader = std::move(loader)},
                        options, signals, end);
  }
};

// A query makes the service end with an error rather than serve on without an engine.
TEST_F(ServiceDeathTest, EndsWhenItsEngineIsLost) {
  EXPECT_EXIT(
      {
        LoadedDatabase database = tiny_database(std::make_unique<LostEngine>());
        const std::string path = "/v1/epochs/" + database.epoch + "/queries";
        ServiceOptions options;
        options.ready_file = state() / "ready";
        auto service = std::async(std::launch::async, [&] { serve(std::move(database), options); });
        const std::string url = wait_for_url(options.ready_file, service);
        LoopbackClient client(url);
        client.send(
            post_request(path, "application/octet-stream", pack(random_query(1), kQueryBits)));
        service.wait();
      },
      testing::ExitedWithCode(1), "");
  EXPECT_FALSE(std::filesystem::exists(state() / "ready"));
  EXPECT_NE(read_device_fault().value_or("").find("cudaErrorX"), std::string::npos);
}

// What is served is on the same device: nothing waits until a query finds out.
TEST_F(ServiceDeathTest, EndsWhenTheDeviceIsLostWhileAnEpochLoads) {
  // Another epoch than the one that is served, which the reloader's first look finds.
  builder_testing::build({{"key", "value"}}, folder_ / "db", {});
  EXPECT_EXIT(
      {
        ServiceOptions options;
        options.reload.directory = folder_ / "db";
        serve(tiny_database(support::PlainEngine::make(kRows, kColumns)), options,
              [](const LoadedDatabase&, const std::function<void()>&) -> LoadedDatabase {
                throw DeviceLostError("cuda/file.cpp:12: cudaCall() failed: cudaErrorX");
              });
      },
      testing::ExitedWithCode(1), "");
  EXPECT_NE(read_device_fault().value_or("").find("while a new epoch was loaded: "),
            std::string::npos);
}

using DeviceEndDeathTest = server_testing::ProcessDeathTest;

TEST_F(DeviceEndDeathTest, WithholdsThenSendsThenEnds) {
  EXPECT_EXIT(
      {
        std::ofstream(state() / "ready") << "url";
        DeviceEnd end(state() / "ready");
        end.set_device("a GPU");
        end.set_service([] { std::cerr << "withheld\n"; }, [] { std::cerr << "sent\n"; });
        end.end("it is wrong");
      },
      testing::ExitedWithCode(1), "^withheld\nsent\n$");
  EXPECT_FALSE(std::filesystem::exists(state() / "ready"));
  EXPECT_NE(read_device_fault().value_or("").find("Z it is wrong (a GPU)"), std::string::npos);
}

// Whatever hangs, and once, however many find the fault.
TEST_F(DeviceEndDeathTest, EndsThoughSendingHangs) {
  EXPECT_EXIT(
      {
        DeviceEnd end;
        end.set_service([] { std::cerr << "withheld\n"; }, [] { pause(); });
        std::thread other([&] { end.end("the device is wrong"); });
        end.end("the device is wrong");
      },
      testing::ExitedWithCode(1), "^withheld\n$");
}

TEST_F(DeviceEndDeathTest, EndsWhereItCanLeaveNoFile) {
  EXPECT_EXIT(
      {
        std::ofstream(state() / "file") << "no folder";
        setenv("STATE_DIRECTORY", (state() / "file").c_str(), 1);
        DeviceEnd().end("it is wrong");
      },
      testing::ExitedWithCode(1), "");
}

}  // namespace
}  // namespace blindfuse::server_testing
