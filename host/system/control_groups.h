// Limits that Linux's control groups (cgroups, versions 1 and 2) set to this process, as service
// managers and containers do. A group's limits hold for the groups within it, too.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace blindfuse {

class ControlGroups {
 public:
  // root: the folder that proc and what it names are in, which is another one in tests. Without
  // groups, or where they cannot be read, there are no limits.
  explicit ControlGroups(std::filesystem::path root = "/");

  // Bytes that the process may take until a group has none left, when there is a limit. Pages of
  // files that the kernel keeps do not count as taken, since it gives them up.
  std::optional<uint64_t> available_memory_bytes() const;

  // Processors whose time the process may use, rounded up, when there is a limit: at least 1.
  std::optional<unsigned> processor_count() const;

 private:
  // The folder of this process's group for a controller, and that of the outermost group to be
  // seen.
  struct Group {
    std::filesystem::path folder;
    std::filesystem::path outermost;
    bool is_version_2 = false;
  };
  std::optional<Group> group_of(const char* controller) const;

  // The least of what `limit_of` says of the group's folder and those around it.
  template <typename Value, typename LimitOf>
  static std::optional<Value> least(const Group& group, const LimitOf& limit_of);

  const std::filesystem::path root_;
};

}  // namespace blindfuse
