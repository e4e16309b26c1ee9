// The parts of a hint that a client asked for, one after another, sent directly from memory.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "host/server/http/body.h"
#include "host/server/routes/part_selection.h"
#include "host/server/serving/serving_epoch.h"

namespace blindfuse {

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
