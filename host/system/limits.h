// The limits that Linux sets to this process.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace blindfuse {

// Raises the limit of file descriptors to `wanted` if it is lower, as far as the hard limit allows.
// Returns the resulting limit.
uint64_t raise_descriptor_limit(uint64_t wanted);

// The limits of control groups (cgroups, versions 1 and 2). Service managers and containers use
// them. A group's limits hold for the groups within it, too.
class ControlGroups {
 public:
  // root: the folder that contains proc and the paths named there, which is another one in tests.
  // Without groups, or if they cannot be read, there are no limits.
  explicit ControlGroups(std::filesystem::path root = "/");

  // The bytes that the process may take until a group has none left, if there is a limit. Pages of
  // files that the kernel caches do not count, since the kernel gives them up.
  std::optional<uint64_t> available_memory_bytes() const;

  // The number of processors whose time the process may use, rounded up, if there is a limit: at
  // least 1.
  std::optional<unsigned> processor_count() const;

 private:
  // The folder of this process's group for a controller, and that of the outermost visible group.
  struct Group {
    std::filesystem::path folder;
    std::filesystem::path outermost;
    bool is_version_2 = false;
  };
  std::optional<Group> group_of(const char* controller) const;

  // The least of the limits of the group's folder and of those around it, by `limit_of`.
  template <typename Value, typename LimitOf>
  static std::optional<Value> least(const Group& group, const LimitOf& limit_of);

  const std::filesystem::path root_;
};

}  // namespace blindfuse
