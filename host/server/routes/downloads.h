// The downloads of clients: the manifest, the table of shards and packs, and hints or masks. Each
// response keeps the epoch's downloads in memory until it is sent.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "host/server/http/response.h"
#include "host/server/routes/api.h"
#include "host/server/serving/serving_epoch.h"
#include "src/arithmetic/layout.h"

namespace blindfuse {

// The routes. Throw Refusal, http::Error, and InputError for a malformed selection of parts.

http::Response answer_database(const ApiRequest& request);

http::Response answer_shards(const ApiRequest& request);

// The hints of the shards that the request's parameter `shards` names, in that order. If responses
// are packed, the masks of the packs that `packs` names. Without the parameter, all of them.
http::Response answer_hint(const ApiRequest& request);

// The parts of a hint that a client names in a query string, shards or packs: "0-3,17". Ranges in
// the order in which they were named; no part is named twice.
using PartSelection = std::vector<HintParts>;

// Throws InputError if the text is not a list of numbers and ranges of numbers 0 .. part_count-1,
// or names a number twice. The message names the faulty part by its place. what: "shard" or "pack".
PartSelection parse_part_selection(std::string_view text, uint32_t part_count,
                                   const std::string& what);

// Returns equal texts for equal selections.
std::string format_part_selection(const PartSelection& selection);

// The body has such parts, one after another, sent directly from memory.
class HintBody final : public http::Body {
 public:
  // selection: of existing parts, at least one.
  HintBody(std::shared_ptr<const EpochDownloads> downloads, PartSelection selection);

  uint64_t size() const override { return size_; }
  std::span<const uint8_t> from(uint64_t offset) const override;
  const void* memory() const override { return downloads_.get(); }

 private:
  const std::shared_ptr<const EpochDownloads> downloads_;
  const PartSelection selection_;
  const uint64_t part_bytes_;
  uint64_t size_ = 0;
};

}  // namespace blindfuse
