#include "host/server/routes/part_selection.h"

#include <algorithm>
#include <charconv>

#include "src/base/errors.h"

namespace blindfuse {
namespace {

// Digits alone: no sign, no space, nothing after them.
bool parse_number(std::string_view text, uint32_t& number) {
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && rest == end;
}

HintParts parse_part(std::string_view part, const std::string& name, uint32_t part_count,
                     const std::string& what) {
  const size_t dash = part.find('-');
  HintParts range;
  const bool parsed = dash == std::string_view::npos
                          ? parse_number(part, range.first)
                          : parse_number(part.substr(0, dash), range.first) &&
                                parse_number(part.substr(dash + 1), range.last);
  if (!parsed) {
    throw InputError(name + " is not a " + what + " or a range of " + what + "s, as in 0-3,17");
  }
  if (dash == std::string_view::npos) range.last = range.first;
  if (range.first > range.last) throw InputError(name + " ends before it begins");
  if (range.last >= part_count) {
    throw InputError(name + " goes beyond the last " + what + ", " +
                     std::to_string(part_count - 1));
  }
  return range;
}

void check_distinct(PartSelection selection, const std::string& what) {
  std::ranges::sort(selection, {}, &HintParts::first);
  for (size_t i = 1; i < selection.size(); ++i) {
    if (selection[i].first <= selection[i - 1].last) {
      throw InputError(what + " " + std::to_string(selection[i].first) + " is named twice");
    }
  }
}

}  // namespace

PartSelection parse_part_selection(std::string_view text, uint32_t part_count,
                                   const std::string& what) {
  PartSelection selection;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string name = "part " + std::to_string(selection.size() + 1) + " of " + what + "s";
    selection.push_back(parse_part(text.substr(begin, end - begin), name, part_count, what));
    begin = end + 1;
  }
  check_distinct(selection, what);
  return selection;
}

std::string format_part_selection(const PartSelection& selection) {
  std::string text;
  for (const HintParts& range : selection) {
    if (!text.empty()) text += ',';
    text += std::to_string(range.first) + "-" + std::to_string(range.last);
  }
  return text;
}

}  // namespace blindfuse
