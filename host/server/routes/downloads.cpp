#include "host/server/routes/downloads.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "host/server/http/response.h"
#include "src/base/errors.h"
#include "src/base/hex.h"
#include "src/protocol/sha256.h"

namespace blindfuse {
namespace {

std::string tag_of(const Sha256Digest& digest) { return '"' + encode_hex(digest) + '"'; }

PartSelection selection_of(const http::RequestHead& request, const Layout& layout) {
  const char* part = layout.mode() == Mode::kPacked ? "pack" : "shard";
  const std::string name = std::string(part) + "s";
  const auto parameters = http::parse_query(request.query);
  for (const auto& parameter : parameters) {
    // Ignoring a misspelt parameter would send everything instead of a part.
    if (parameter.first != name) {
      throw InputError("the only parameter of this database's hint is " + name);
    }
  }
  if (parameters.empty()) return {{0, layout.hint_part_count() - 1}};
  if (parameters.size() > 1) throw InputError(name + " is given twice");
  return parse_part_selection(parameters.front().second, layout.hint_part_count(), part);
}

// The resource is a file of an epoch, which never changes.
http::Resource resource_of(const ApiRequest& request, const Sha256Digest& tag,
                           std::shared_ptr<const http::Body> body) {
  // A cache between us must not hand to others what a client needed a key for.
  const bool is_private = request.context.options.api_keys != nullptr;
  return {
      .content_type = "application/octet-stream",
      .entity_tag = tag_of(tag),
      // A year is as long as caches keep anything.
      .cache_control =
          std::string(is_private ? "private" : "public") + ", max-age=31536000, immutable",
      .has_ranges = true,
      .body = std::move(body),
  };
}

// Takes digits alone: no sign, no space, nothing after them.
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

http::Response answer_database(const ApiRequest& request) {
  const auto text = request.context.epochs.current()->manifest_text();
  const auto body = std::make_shared<http::MemoryBody>(text);
  return http::respond_with(request.head, {
                                              .content_type = "application/json",
                                              // One epoch may get several signatures.
                                              .entity_tag = tag_of(sha256(body->from(0))),
                                              .cache_control = "no-cache",
                                              .body = body,
                                          });
}

http::Response answer_shards(const ApiRequest& request) {
  const LoadedDatabase& database = request.epoch->database();
  auto body = std::make_shared<http::MemoryBody>(database.downloads->table, database.downloads);
  return http::respond_with(request.head,
                            resource_of(request, database.manifest.table, std::move(body)));
}

http::Response answer_hint(const ApiRequest& request) {
  const LoadedDatabase& database = request.epoch->database();
  PartSelection selection = selection_of(request.head, database.manifest.layout);
  // The tag depends on the epoch and the parts, and not on how a client wrote them.
  const std::string identity = database.epoch + "/" + format_part_selection(selection);
  const Sha256Digest tag =
      sha256({reinterpret_cast<const uint8_t*>(identity.data()), identity.size()});
  auto body = std::make_shared<HintBody>(database.downloads, std::move(selection));
  return http::respond_with(request.head, resource_of(request, tag, std::move(body)));
}

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

HintBody::HintBody(std::shared_ptr<const EpochDownloads> downloads, PartSelection selection)
    : downloads_(std::move(downloads)),
      selection_(std::move(selection)),
      part_bytes_(downloads_->hints.front()->size()) {
  for (const HintParts& parts : selection_) {
    size_ += (uint64_t{parts.last} - parts.first + 1) * part_bytes_;
  }
}

std::span<const uint8_t> HintBody::from(uint64_t offset) const {
  uint64_t part = offset / part_bytes_;  // of those that are selected
  for (const HintParts& parts : selection_) {
    const uint64_t count = uint64_t{parts.last} - parts.first + 1;
    if (part < count) {
      return std::span(*downloads_->hints[parts.first + part]).subspan(offset % part_bytes_);
    }
    part -= count;
  }
  abort_broken_invariant("an offset lies in the body", __FILE__, __LINE__);
}

}  // namespace blindfuse
