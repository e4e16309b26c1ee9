#include "host/server/routes/hint_body.h"

#include <utility>

#include "src/base/errors.h"

namespace blindfuse {

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
