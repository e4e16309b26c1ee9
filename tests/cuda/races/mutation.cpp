#include "tests/cuda/races/mutation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <tuple>

namespace blindfuse::races {
namespace {

// How many calls of the same kind, in the same function, stand before it in the file.
int number_of(const Call& call, const Report& report) {
  int number = 1;
  for (const auto& [other, count] : report.calls) {
    number += other.file == call.file && other.function == call.function &&
              other.step == call.step && other.line < call.line;
  }
  return number;
}

// What shows that the call is needed; nothing if nothing does.
std::string why_needed(const Subject& subject, const Call& call) {
  const Report quick = subject.run({call, false, true}, nullptr);
  if (!quick.races.empty()) return "race: " + name_of(quick.races[0].fault);
  bool is_right = false;
  const Report whole = subject.run({call, true, false}, &is_right);
  if (!whole.races.empty()) return "race: " + name_of(whole.races[0].fault);
  return is_right ? "" : "wrong result";
}

}  // namespace

void check(const Subject& subject) {
  SCOPED_TRACE(subject.name);
  bool is_right = false;
  const Report report = subject.run({}, &is_right);
  EXPECT_TRUE(report.races.empty()) << report.text();
  EXPECT_TRUE(is_right);
  if (report.calls.empty()) {
    std::printf("%-20s synchronizes with nothing\n", subject.name.c_str());
  }
  std::vector<bool> was_seen(subject.redundant.size());
  for (const auto& [call, count] : report.calls) {
    const int number = number_of(call, report);
    const auto known = std::ranges::find_if(subject.redundant, [&](const Redundant& r) {
      return r.file == call.file && r.function == call.function && r.step == call.step &&
             r.nth == number;
    });
    const std::string why = why_needed(subject, call);
    const std::string where =
        call.file + ' ' + call.function + ' ' + name_of(call.step) + " #" + std::to_string(number);
    const bool is_listed = known != subject.redundant.end();
    std::printf("%-20s %-52s %s\n", subject.name.c_str(), where.c_str(),
                !why.empty() ? why.c_str()
                : is_listed  ? known->reason
                             : "NOT NEEDED, NOT LISTED");
    if (is_listed) was_seen[static_cast<size_t>(known - subject.redundant.begin())] = true;
    EXPECT_EQ(why.empty(), is_listed)
        << where << " (line " << call.line << "): "
        << (why.empty() ? "nothing misses it: take it out, or list it with the reason"
                        : "is listed as redundant, but without it: " + why);
  }
  for (size_t i = 0; i < was_seen.size(); ++i) {
    const Redundant& r = subject.redundant[i];
    EXPECT_TRUE(was_seen[i]) << r.file << ' ' << r.function << ' ' << name_of(r.step) << " #"
                             << r.nth << " is listed, but the kernel has no such call";
  }
}

}  // namespace blindfuse::races
