#include "host/server/routes/shard_selection.h"

#include <algorithm>
#include <charconv>

#include "src/errors.h"

namespace blindfuse {
namespace {

// Digits alone: no sign, no space, nothing behind them.
bool parse_number(std::string_view text, uint32_t& number) {
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && rest == end;
}

ShardRange parse_part(std::string_view part, const std::string& name, uint32_t shard_count) {
  const size_t dash = part.find('-');
  ShardRange range;
  const bool parsed = dash == std::string_view::npos
                          ? parse_number(part, range.first)
                          : parse_number(part.substr(0, dash), range.first) &&
                                parse_number(part.substr(dash + 1), range.last);
  if (!parsed) throw BadInput(name + " is not a shard or a range of shards, as in 0-3,17");
  if (dash == std::string_view::npos) range.last = range.first;
  if (range.first > range.last) throw BadInput(name + " ends before it begins");
  if (range.last >= shard_count) {
    throw BadInput(name + " goes beyond the last shard, " + std::to_string(shard_count - 1));
  }
  return range;
}

void check_distinct(ShardSelection selection) {
  std::ranges::sort(selection, {}, &ShardRange::first);
  for (size_t i = 1; i < selection.size(); ++i) {
    if (selection[i].first <= selection[i - 1].last) {
      throw BadInput("shard " + std::to_string(selection[i].first) + " is named twice");
    }
  }
}

}  // namespace

ShardSelection parse_shard_selection(std::string_view text, uint32_t shard_count) {
  ShardSelection selection;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string name = "part " + std::to_string(selection.size() + 1) + " of shards";
    selection.push_back(parse_part(text.substr(begin, end - begin), name, shard_count));
    begin = end + 1;
  }
  check_distinct(selection);
  return selection;
}

std::string format_shard_selection(const ShardSelection& selection) {
  std::string text;
  for (const ShardRange& range : selection) {
    if (!text.empty()) text += ',';
    text += std::to_string(range.first) + "-" + std::to_string(range.last);
  }
  return text;
}

}  // namespace blindfuse
