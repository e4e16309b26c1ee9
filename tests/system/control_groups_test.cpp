// Control groups by the kernel's documents (Documentation/admin-guide/cgroup-v2.rst and
// cgroup-v1/memory.rst, proc(5)), in folders that look like theirs.
#include "host/system/limits.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

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

}  // namespace
}  // namespace blindfuse
