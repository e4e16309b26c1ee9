#include "host/server/device_end.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>

#include "host/system/device_fault.h"
#include "tests/server/process_death.h"

namespace blindfuse {
namespace {

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
}  // namespace blindfuse
