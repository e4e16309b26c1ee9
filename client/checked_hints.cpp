#include "client/checked_hints.h"

#include <algorithm>
#include <new>
#include <vector>

#include "client/report_progress.h"
#include "src/base/errors.h"

namespace blindfuse {
namespace {

constexpr uint64_t kPageBytes = 4096;
constexpr uint64_t kReportBytes = uint64_t{1} << 20;  // about a millisecond

// Memory as it comes: writing zeros first would take as long as reading the files.
std::unique_ptr<uint8_t[]> memory_for(uint64_t bytes, uint64_t bytes_max) {
  if (bytes > bytes_max) return nullptr;
  return std::unique_ptr<uint8_t[]>(new (std::nothrow) uint8_t[bytes]);
}

}  // namespace

CheckedHints::CheckedHints(const HintCache& cache, const DatabaseDescription& database,
                           HintFiles files, uint64_t memory_bytes_max,
                           const ProgressCallback& progress)
    : cache_(cache), database_(database), files_(files) {
  if (files == HintFiles::kOnDisk) {
    kept_ = memory_for(database.layout().hint_bytes(), memory_bytes_max);
  }
  check_all(progress);
}

void CheckedHints::check_all(const ProgressCallback& progress) const {
  const Layout& layout = database_.layout();
  const uint64_t part_bytes = layout.hint_part_bytes();
  std::vector<uint8_t> scratch(kept_ ? 0 : part_bytes);
  uint64_t next_report = 0;
  for (uint32_t part = 0; part < layout.hint_part_count(); ++part) {
    const uint64_t at = part * part_bytes;
    if (at >= next_report) {
      report_progress(progress, {ClientStage::kCheckingHints, at, layout.hint_bytes()});
      next_report = at + kReportBytes;
    }
    cache_.read_part(database_, part,
                     kept_ ? std::span(kept_.get() + at, part_bytes) : std::span(scratch));
  }
  report_progress(progress,
                  {ClientStage::kCheckingHints, layout.hint_bytes(), layout.hint_bytes()});
}

void CheckedHints::for_each(std::span<const uint32_t> shards, const Use& use) const {
  if (kept_) {
    use_kept(shards, use);
  } else if (files_ == HintFiles::kOnDisk) {
    read_all_and_use(shards, use);
  } else {
    for (size_t i = 0; i < shards.size(); ++i) use(i, cache_.read_hint(database_, shards[i]));
  }
}

// A system that is short of memory swaps out what was not used for longest. To it, all parts were
// used alike.
void CheckedHints::touch_kept() const {
  const volatile uint8_t* const bytes = kept_.get();
  for (uint64_t at = 0; at < database_.layout().hint_bytes(); at += kPageBytes) {
    static_cast<void>(bytes[at]);
  }
}

void CheckedHints::use_kept(std::span<const uint32_t> shards, const Use& use) const {
  touch_kept();
  const Layout& layout = database_.layout();
  const uint64_t part_bytes = layout.hint_part_bytes();
  for (size_t i = 0; i < shards.size(); ++i) {
    const HintParts parts = layout.hint_parts_of(shards[i]);
    use(i, std::span(kept_.get() + parts.first * part_bytes,
                     (uint64_t{parts.last} - parts.first + 1) * part_bytes));
  }
}

// With a window over as many parts as a shard takes, which are as many for each.
void CheckedHints::read_all_and_use(std::span<const uint32_t> shards, const Use& use) const {
  const Layout& layout = database_.layout();
  const uint64_t part_bytes = layout.hint_part_bytes();
  const HintParts of_first_shard = layout.hint_parts_of(0);
  std::vector<uint8_t> window((uint64_t{of_first_shard.last} + 1) * part_bytes);
  const auto newest = std::span(window).last(part_bytes);
  for (uint32_t part = 0; part < layout.hint_part_count(); ++part) {
    std::copy(window.begin() + static_cast<ptrdiff_t>(part_bytes), window.end(), window.begin());
    cache_.read_part(database_, part, newest);
    for (size_t i = 0; i < shards.size(); ++i) {
      if (layout.hint_parts_of(shards[i]).last == part) use(i, window);
    }
  }
}

}  // namespace blindfuse
