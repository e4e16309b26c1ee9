#include "host/system/limits.h"

#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace blindfuse {

uint64_t raise_descriptor_limit(uint64_t wanted) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::numeric_limits<uint64_t>::max();
  if (limit.rlim_cur >= wanted) return limit.rlim_cur;
  rlimit raised = limit;
  raised.rlim_cur = std::min<rlim_t>(wanted, limit.rlim_max);
  return setrlimit(RLIMIT_NOFILE, &raised) == 0 ? raised.rlim_cur : limit.rlim_cur;
}

namespace {

namespace fs = std::filesystem;

std::vector<std::string> words_of(const std::string& line, char separator) {
  std::vector<std::string> words;
  std::istringstream text(line);
  for (std::string word; std::getline(text, word, separator);) words.push_back(word);
  return words;
}

bool has_word(const std::string& list, std::string_view word) {
  return std::ranges::count(words_of(list, ','), word) > 0;
}

std::optional<uint64_t> number_in(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;  // "max", or "-1"
  return number;
}

// The number in the file's first line. Nothing where it has none, or there is no such file.
std::optional<uint64_t> number_of(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  if (!std::getline(in, line)) return std::nullopt;
  return number_in(line);
}

// The sum of these values in a file with a name and a number in each line.
uint64_t sum_of(const fs::path& file, const std::vector<std::string>& names) {
  std::ifstream in(file);
  uint64_t sum = 0;
  std::string name;
  for (uint64_t value = 0; in >> name >> value;) {
    if (std::ranges::count(names, name) > 0) sum += value;
  }
  return sum;
}

// Version 1 has a number near 2^63 where there is no limit, which is above anything that a process
// takes.
std::optional<uint64_t> memory_left(const fs::path& folder, bool is_version_2) {
  std::optional<uint64_t> limit;
  for (const char* file : is_version_2 ? std::vector{"memory.max", "memory.high"}
                                       : std::vector{"memory.limit_in_bytes"}) {
    const auto bytes = number_of(folder / file);
    if (bytes && (!limit || *bytes < *limit)) limit = bytes;
  }
  const auto taken =
      number_of(folder / (is_version_2 ? "memory.current" : "memory.usage_in_bytes"));
  if (!limit || !taken) return std::nullopt;
  const uint64_t kept =
      is_version_2 ? sum_of(folder / "memory.stat", {"inactive_file", "active_file"})
                   : sum_of(folder / "memory.stat", {"total_inactive_file", "total_active_file"});
  const uint64_t needed = *taken - std::min(kept, *taken);
  return *limit - std::min(needed, *limit);
}

std::optional<unsigned> processors(const fs::path& folder, bool is_version_2) {
  std::optional<uint64_t> quota, period;
  if (is_version_2) {
    std::ifstream in(folder / "cpu.max");
    std::string first, second;
    in >> first >> second;
    quota = number_in(first);
    period = number_in(second);
  } else {
    quota = number_of(folder / "cpu.cfs_quota_us");
    period = number_of(folder / "cpu.cfs_period_us");
  }
  if (!quota || !period || *period == 0) return std::nullopt;
  return static_cast<unsigned>(std::max<uint64_t>(1, (*quota + *period - 1) / *period));
}

}  // namespace

ControlGroups::ControlGroups(fs::path root) : root_(std::move(root)) {}

std::optional<uint64_t> ControlGroups::available_memory_bytes() const {
  const auto group = group_of("memory");
  if (!group) return std::nullopt;
  return least<uint64_t>(*group, memory_left);
}

std::optional<unsigned> ControlGroups::processor_count() const {
  const auto group = group_of("cpu");
  if (!group) return std::nullopt;
  return least<unsigned>(*group, processors);
}

// A line of /proc/self/cgroup is "number:controllers:/group", without controllers for version 2. A
// line of /proc/self/mountinfo has in its fields 4 and 5 the group that is mounted and where, and
// after a lone "-" the kind, the source, and the options, which are the controllers of version 1
// (proc(5)).
std::optional<ControlGroups::Group> ControlGroups::group_of(const char* controller) const {
  std::optional<std::string> version_1, version_2;
  std::ifstream groups(root_ / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (controllers.empty()) version_2 = line.substr(second + 1);
    if (has_word(controllers, controller)) version_1 = line.substr(second + 1);
  }
  std::ifstream mounts(root_ / "proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    const std::vector<std::string> fields = words_of(line, ' ');
    const auto dash = std::ranges::find(fields, "-");
    if (fields.end() - dash < 4 || dash - fields.begin() < 5) continue;
    // A controller belongs to one of the two versions.
    const bool is_version_2 = dash[1] == "cgroup2" && !version_1 && version_2;
    const bool is_version_1 = dash[1] == "cgroup" && version_1 && has_word(dash[3], controller);
    if (!is_version_1 && !is_version_2) continue;
    const std::string& name = is_version_2 ? *version_2 : *version_1;
    Group group{{}, root_ / fs::path(fields[4]).relative_path(), is_version_2};
    // A container may mount the group itself.
    const fs::path within = fs::path(name).lexically_relative(fields[3]);
    const bool is_within = !within.empty() && *within.begin() != "..";
    group.folder = is_within ? (group.outermost / within).lexically_normal() : group.outermost;
    return group;
  }
  return std::nullopt;
}

template <typename Value, typename LimitOf>
std::optional<Value> ControlGroups::least(const Group& group, const LimitOf& limit_of) {
  std::optional<Value> found;
  const auto outermost = std::distance(group.outermost.begin(), group.outermost.end());
  for (fs::path folder = group.folder;
       std::distance(folder.begin(), folder.end()) >= outermost && !folder.empty();
       folder = folder.parent_path()) {
    const std::optional<Value> limit = limit_of(folder, group.is_version_2);
    if (limit && (!found || *limit < *found)) found = limit;
    if (folder == folder.parent_path()) break;
  }
  return found;
}

}  // namespace blindfuse
