#include "client/checked_hints.h"

#include <algorithm>
#include <new>
#include <vector>

#include "client/deadline.h"
#include "client/secret.h"
#include "src/base/errors.h"

namespace blindfuse {
namespace {

constexpr uint64_t kPageBytes = 4096;
constexpr uint64_t kReportBytes = uint64_t{1} << 20;  // about a millisecond

// Reports how far all parts have been read, once for each part or kReportBytes.
class ReadingReport {
 public:
  ReadingReport(const ProgressCallback& progress, const Layout& layout)
      : progress_(progress),
        part_bytes_(layout.hint_part_bytes()),
        all_bytes_(layout.hint_bytes()) {}

  void before(uint32_t part) {
    const uint64_t at = part * part_bytes_;
    if (at < next_) return;
    report_progress(progress_, {ClientStage::kCheckingHints, at, all_bytes_});
    next_ = at + kReportBytes;
  }
  void at_end() const {
    report_progress(progress_, {ClientStage::kCheckingHints, all_bytes_, all_bytes_});
  }

 private:
  const ProgressCallback& progress_;
  const uint64_t part_bytes_;
  const uint64_t all_bytes_;
  uint64_t next_ = 0;
};

// The memory is not cleared: writing zeros first would take as long as reading the files.
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
  ReadingReport report(progress, layout);
  for (uint32_t part = 0; part < layout.hint_part_count(); ++part) {
    report.before(part);
    cache_.read_part(
        database_, part,
        kept_ ? std::span(kept_.get() + part * part_bytes, part_bytes) : std::span(scratch));
  }
  report.at_end();
}

void CheckedHints::for_each(std::span<const uint32_t> shards, const Use& use,
                            const ProgressCallback& progress) const {
  if (kept_) {
    use_kept(shards, use);
  } else if (files_ == HintFiles::kOnDisk) {
    read_all_and_use(shards, use, progress);
  } else {
    for (size_t i = 0; i < shards.size(); ++i) use(i, cache_.read_hint(database_, shards[i]));
  }
}

void CheckedHints::use_kept(std::span<const uint32_t> shards, const Use& use) const {
  const Layout& layout = database_.layout();
  // A system that is short of memory swaps out pages that were unused for longest. Reading a byte
  // of every page makes all parts look used alike.
  const volatile uint8_t* const bytes = kept_.get();
  for (uint64_t at = 0; at < layout.hint_bytes(); at += kPageBytes) static_cast<void>(bytes[at]);
  const uint64_t part_bytes = layout.hint_part_bytes();
  for (size_t i = 0; i < shards.size(); ++i) {
    const HintParts parts = layout.hint_parts_of(shards[i]);
    use(i, std::span(kept_.get() + parts.first * part_bytes,
                     (uint64_t{parts.last} - parts.first + 1) * part_bytes));
  }
}

// Each shard takes the same number of parts. A window over that many moves through a buffer of
// twice its size. At the end of the buffer the parts that are still needed are copied to its
// beginning, so each part is copied at most once.
void CheckedHints::read_all_and_use(std::span<const uint32_t> shards, const Use& use,
                                    const ProgressCallback& progress) const {
  const Layout& layout = database_.layout();
  const uint64_t part_bytes = layout.hint_part_bytes();
  SecretBuffer<uint32_t> last_parts(shards.size());
  for (size_t i = 0; i < shards.size(); ++i) last_parts[i] = layout.hint_parts_of(shards[i]).last;
  const uint64_t window_bytes = (uint64_t{layout.hint_parts_of(0).last} + 1) * part_bytes;
  std::vector<uint8_t> memory(window_bytes > part_bytes ? 2 * window_bytes : part_bytes);
  uint64_t end = window_bytes - part_bytes;  // of what has been read
  ReadingReport report(progress, layout);
  for (uint32_t part = 0; part < layout.hint_part_count(); ++part) {
    report.before(part);
    if (end == memory.size()) {
      const uint64_t kept = window_bytes - part_bytes;
      std::copy_n(memory.end() - static_cast<ptrdiff_t>(kept), kept, memory.begin());
      end = kept;
    }
    cache_.read_part(database_, part, std::span(memory).subspan(end, part_bytes));
    end += part_bytes;
    const auto window = std::span(memory).subspan(end - window_bytes, window_bytes);
    for (size_t i = 0; i < shards.size(); ++i) {
      if (last_parts[i] == part) use(i, window);
    }
  }
  report.at_end();
}

}  // namespace blindfuse
