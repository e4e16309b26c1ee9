// Control groups by the kernel's documents (Documentation/admin-guide/cgroup-v2.rst and
// cgroup-v1/memory.rst, proc(5)), in folders that look like theirs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "host/system/device_fault.h"
#include "host/system/limits.h"
#include "host/system/memory.h"
#include "tests/publish/builder_testing.h"

namespace blindfuse {
namespace {

class ControlGroupsTest : public ::testing::Test {
 protected:
  void write(const std::string& file, const std::string& text) {
    const std::filesystem::path path = folder_.path() / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  void mount_version_2(const std::string& group, const std::string& mounted = "/") {
    write("proc/self/cgroup", "0::" + group + "\n");
    write("proc/self/mountinfo",
          "24 1 8:1 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
          "31 24 0:28 " +
              mounted + " /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n");
  }
  ControlGroups groups() const { return ControlGroups(folder_.path()); }

  const builder_testing::TemporaryFolder folder_;
};

TEST_F(ControlGroupsTest, AreNoLimitWhereThereAreNone) {
  EXPECT_EQ(groups().available_memory_bytes(), std::nullopt);
  EXPECT_EQ(groups().processor_count(), std::nullopt);
  mount_version_2("/");
  EXPECT_EQ(groups().available_memory_bytes(), std::nullopt) << "the outermost group has no files";
  mount_version_2("/service");
  write("sys/fs/cgroup/service/memory.max", "max\n");
  write("sys/fs/cgroup/service/memory.high", "max\n");
  write("sys/fs/cgroup/service/memory.current", "4096\n");
  write("sys/fs/cgroup/service/cpu.max", "max 100000\n");
  EXPECT_EQ(groups().available_memory_bytes(), std::nullopt);
  EXPECT_EQ(groups().processor_count(), std::nullopt);
}

TEST_F(ControlGroupsTest, PagesOfFilesAreNotTaken) {
  mount_version_2("/system.slice/blindfuse.service");
  const std::string group = "sys/fs/cgroup/system.slice/blindfuse.service/";
  write(group + "memory.max", "1000000\n");
  write(group + "memory.current", "700000\n");
  write(group + "memory.stat",
        "anon 300000\nfile 400000\ninactive_file 250000\nactive_file 100000\n");
  EXPECT_EQ(groups().available_memory_bytes(), 1'000'000u - (700'000 - 350'000));
  write(group + "memory.high", "500000\n");
  EXPECT_EQ(groups().available_memory_bytes(), 500'000u - 350'000);
  write(group + "memory.current", "2000000\n");
  EXPECT_EQ(groups().available_memory_bytes(), 0u) << "more than the limit, as it was lowered";
}

TEST_F(ControlGroupsTest, LimitsOfOuterGroupsHold) {
  mount_version_2("/a/b");
  write("sys/fs/cgroup/a/b/memory.max", "5000000\n");
  write("sys/fs/cgroup/a/b/memory.current", "1000000\n");
  write("sys/fs/cgroup/a/memory.max", "6000000\n");
  write("sys/fs/cgroup/a/memory.current", "5500000\n");
  EXPECT_EQ(groups().available_memory_bytes(), 500'000u) << "others are in the outer group, too";
  write("sys/fs/cgroup/a/b/cpu.max", "400000 100000\n");
  write("sys/fs/cgroup/a/cpu.max", "150000 100000\n");
  EXPECT_EQ(groups().processor_count(), 2u);
  write("sys/fs/cgroup/a/cpu.max", "1000 100000\n");
  EXPECT_EQ(groups().processor_count(), 1u);
}

// With a name space of its own a process sees its group as "/"; without one, a container's mount is
// of the group itself.
TEST_F(ControlGroupsTest, AreFoundInContainers) {
  write("sys/fs/cgroup/memory.max", "3000\n");
  write("sys/fs/cgroup/memory.current", "1000\n");
  for (const auto& [group, mounted] :
       {std::pair("/", "/"), std::pair("/docker/1f", "/docker/1f"), std::pair("/../2e", "/")}) {
    mount_version_2(group, mounted);
    EXPECT_EQ(groups().available_memory_bytes(), 2000u) << group;
  }
}

TEST_F(ControlGroupsTest, OfVersion1) {
  write("proc/self/cgroup", "5:memory:/jobs/7\n3:cpu,cpuacct:/jobs/7\n1:name=systemd:/\n0::/\n");
  write("proc/self/mountinfo",
        "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
        "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
        "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  const std::string memory = "sys/fs/cgroup/memory/";
  write(memory + "memory.limit_in_bytes", "9223372036854771712\n");
  write(memory + "memory.usage_in_bytes", "1000000\n");
  write(memory + "jobs/7/memory.limit_in_bytes", "2000000\n");
  write(memory + "jobs/7/memory.usage_in_bytes", "900000\n");
  write(memory + "jobs/7/memory.stat",
        "inactive_file 1\nactive_file 1\ntotal_inactive_file 300000\ntotal_active_file 100000\n");
  EXPECT_EQ(groups().available_memory_bytes(), 1'500'000u);
  const std::string cpu = "sys/fs/cgroup/cpu,cpuacct/jobs/7/";
  write(cpu + "cpu.cfs_period_us", "100000\n");
  write(cpu + "cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(groups().processor_count(), std::nullopt);
  write(cpu + "cpu.cfs_quota_us", "250000\n");
  EXPECT_EQ(groups().processor_count(), 3u);
}

TEST_F(ControlGroupsTest, WhatCannotBeReadIsNoLimit) {
  mount_version_2("/a");
  for (const char* text : {"", "\n", "many\n", "-5\n", "99999999999999999999999\n"}) {
    write("sys/fs/cgroup/a/memory.max", text);
    write("sys/fs/cgroup/a/memory.current", "1\n");
    EXPECT_EQ(groups().available_memory_bytes(), std::nullopt) << text;
  }
  for (const char* text : {"", "5\n", "5 0\n", "max\n"}) {
    write("sys/fs/cgroup/a/cpu.max", text);
    EXPECT_EQ(groups().processor_count(), std::nullopt) << text;
  }
  for (const char* text : {"", "no colon\n", "1:\n", "0::\n"}) {
    write("proc/self/cgroup", text);
    EXPECT_EQ(groups().processor_count(), std::nullopt) << text;
  }
}

class DescriptorLimitTest : public ::testing::Test {
 protected:
  DescriptorLimitTest() { getrlimit(RLIMIT_NOFILE, &before_); }
  ~DescriptorLimitTest() override { setrlimit(RLIMIT_NOFILE, &before_); }
  void set_soft(rlim_t soft) const {
    const rlimit limit{soft, before_.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  }
  static rlim_t soft() {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur;
  }

  rlimit before_{};
};

TEST_F(DescriptorLimitTest, IsRaisedToWhatIsWanted) {
  set_soft(100);
  EXPECT_EQ(raise_descriptor_limit(150), 150u);
  EXPECT_EQ(soft(), 150u);
}

TEST_F(DescriptorLimitTest, IsNeverLowered) {
  set_soft(200);
  EXPECT_EQ(raise_descriptor_limit(150), 200u);
  EXPECT_EQ(soft(), 200u);
}

TEST_F(DescriptorLimitTest, EndsAtTheHardLimit) {
  set_soft(100);
  EXPECT_EQ(raise_descriptor_limit(uint64_t{before_.rlim_max} + 1), before_.rlim_max);
  EXPECT_EQ(soft(), before_.rlim_max);
}

TEST(ZeroedWords, AreZero) { EXPECT_EQ(zeroed_words("test", 3), (std::vector<uint32_t>{0, 0, 0})); }

void expect_refused(uint64_t count) {
  try {
    zeroed_words("sums", count);
    ADD_FAILURE();
  } catch (const ResourceError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("no memory for the sums, "));
  }
}

TEST(ZeroedWords, SayWhatThereIsNoMemoryFor) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers end the process";
#endif
  expect_refused(uint64_t{1} << 60);
}

TEST(ZeroedWords, SayWhatNoVectorCanHold) { expect_refused(uint64_t{1} << 63); }

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
