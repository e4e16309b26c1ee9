#include "host/system/device_fault.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/publish/builder_testing.h"

namespace blindfuse {
namespace {

class DeviceFaultFile : public ::testing::Test {
 protected:
  DeviceFaultFile() { setenv("STATE_DIRECTORY", folder_.path().c_str(), 1); }
  ~DeviceFaultFile() override { unsetenv("STATE_DIRECTORY"); }

  const builder_testing::TemporaryFolder folder_;
};

TEST_F(DeviceFaultFile, SaysWhatWasLeftUntilItIsDeleted) {
  EXPECT_EQ(read_device_fault(), std::nullopt);
  const std::string next = leave_device_fault("the kernel mma is wrong");
  EXPECT_EQ(next, "--engine auto uses the processor until " + (folder_ / "gpu-fault").string() +
                      " is deleted");
  ASSERT_TRUE(read_device_fault());
  EXPECT_NE(read_device_fault()->find("Z the kernel mma is wrong"), std::string::npos);
  leave_device_fault("another one");
  EXPECT_NE(read_device_fault()->find("Z another one"), std::string::npos);
  std::filesystem::remove(device_fault_file());
  EXPECT_EQ(read_device_fault(), std::nullopt);
}

// Nothing that is there counts as nothing.
TEST_F(DeviceFaultFile, IsThereWhenItCannotBeRead) {
  std::ofstream(device_fault_file()) << "";
  EXPECT_EQ(read_device_fault(), "it cannot be read");
  std::filesystem::remove(device_fault_file());
  std::filesystem::create_directory(device_fault_file());
  EXPECT_EQ(read_device_fault(), "it cannot be read");
}

TEST_F(DeviceFaultFile, LiesWhereTheServiceManagerSays) {
  setenv("STATE_DIRECTORY", "/var/lib/one:/var/lib/two", 1);
  EXPECT_EQ(device_fault_file(), "/var/lib/one/gpu-fault");
  unsetenv("STATE_DIRECTORY");
  const char* const home = getenv("HOME");
  const std::string before = home == nullptr ? "" : home;
  setenv("HOME", "/home/one", 1);
  EXPECT_EQ(device_fault_file(), "/home/one/.local/state/blindfuse/gpu-fault");
  setenv("XDG_STATE_HOME", "/home/one/state", 1);
  EXPECT_EQ(device_fault_file(), "/home/one/state/blindfuse/gpu-fault");
  unsetenv("XDG_STATE_HOME");
  unsetenv("HOME");
  EXPECT_EQ(device_fault_file(), "");
  EXPECT_EQ(read_device_fault(), std::nullopt);
  EXPECT_EQ(leave_device_fault("a fault"),
            "the next start uses the GPU again, since no file could be left: neither "
            "STATE_DIRECTORY nor HOME is set");
  if (home != nullptr) setenv("HOME", before.c_str(), 1);
}

}  // namespace
}  // namespace blindfuse
