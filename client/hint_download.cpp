#include "client/hint_download.h"

#include <blindfuse/errors.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "client/deadline.h"
#include "src/base/hex.h"
#include "src/system/file.h"

namespace blindfuse {
namespace {

constexpr size_t kPartsTextMax = 1500;  // well below the 8 KiB that servers allow an address
constexpr size_t kReadBytes = 256 * 1024;

// Thrown when the first hint of a request, begun in an earlier attempt, turned out wrong; its file
// is gone. The message is for when that happens again.
struct BadResumption : ProtocolError {
  using ProtocolError::ProtocolError;
};

[[noreturn]] void fail_writing(const std::filesystem::path& path) {
  throw ResourceError("cannot write " + path.string() + ": " + std::strerror(errno));
}

// "the hint of shard 3"
std::string name_of(const HintShape& shape, uint32_t part) {
  return (shape.mode == Mode::kPacked ? "the mask of pack " : "the hint of shard ") +
         std::to_string(part);
}

// The beginning of one part, in a file that outlives the process.
class PartialHint {
 public:
  // Continues an earlier attempt's file if `resume` is set, and otherwise begins from nothing.
  PartialHint(const std::filesystem::path& folder, const MissingHint& hint, const HintShape& shape,
              bool resume)
      : hint_(hint),
        shape_(shape),
        path_(folder / partial_file_name(hint.hash)),
        whole_path_(folder / hint_file_name(hint.hash)),
        file_(open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_APPEND, 0666)) {
    if (!file_.is_open()) fail_writing(path_);
    have_ = file_size(file_, path_);
    if (have_ > shape_.bytes || !resume) {
      if (ftruncate(file_.get(), 0) != 0) fail_writing(path_);
      have_ = 0;
    }
    resumed_ = have_ > 0;
    std::vector<uint8_t> buffer(std::min<uint64_t>(have_, kReadBytes));
    for (uint64_t at = 0; at < have_;) {
      const auto piece = std::span(buffer).first(std::min<uint64_t>(have_ - at, buffer.size()));
      read_exactly(file_, at, piece, path_);
      take(piece);
      at += piece.size();
    }
  }

  uint64_t have() const { return have_; }

  // Takes as many bytes as are left of the hint.
  size_t append(std::span<const uint8_t> bytes) {
    const auto mine = bytes.first(std::min<uint64_t>(bytes.size(), shape_.bytes - have_));
    take(mine);
    for (auto rest = mine; !rest.empty();) {
      const ssize_t put = write(file_.get(), rest.data(), rest.size());
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) fail_writing(path_);
      rest = rest.subspan(static_cast<size_t>(put));
    }
    have_ += mine.size();
    return mine.size();
  }

  bool complete() const { return have_ == shape_.bytes; }

  // Checks the whole part, and gives the file its final name.
  void commit() {
    if (hash_.finish() == hint_.hash) {
      if (last_byte_ > shape_.last_byte_max) {
        unlink(path_.c_str());
        throw ProtocolError(name_of(shape_, hint_.part) +
                            " that the server sent has unused bits that are set");
      }
      if (rename(path_.c_str(), whole_path_.c_str()) != 0) fail_writing(whole_path_);
      return;
    }
    unlink(path_.c_str());
    if (resumed_) {
      throw BadResumption(name_of(shape_, hint_.part) +
                          " came in pieces and, put together, is not the one that the server's "
                          "table names; it was begun again once, and came out wrong again");
    }
    throw ProtocolError(name_of(shape_, hint_.part) +
                        " that the server sent is not the one that its table names");
  }

 private:
  void take(std::span<const uint8_t> bytes) {
    hash_.update(bytes);
    if (!bytes.empty()) last_byte_ = bytes.back();
  }

  const MissingHint hint_;
  const HintShape shape_;
  const std::filesystem::path path_;
  const std::filesystem::path whole_path_;
  FileDescriptor file_;
  Sha256 hash_;
  uint8_t last_byte_ = 0;
  uint64_t have_ = 0;
  bool resumed_ = false;
};

// Cuts a stream of hints into files.
class HintWriter {
 public:
  HintWriter(const std::filesystem::path& folder, std::span<const MissingHint> group,
             const HintShape& shape)
      : folder_(folder), group_(group), shape_(shape) {
    if (open_next()) finish_when_complete();
  }

  // Bytes of the group that need not be asked for.
  uint64_t have() const { return done_ * shape_.bytes + (partial_ ? partial_->have() : 0); }
  size_t done() const { return done_; }

  void write(std::span<const uint8_t> bytes) {
    while (!bytes.empty() && open_next()) {
      bytes = bytes.subspan(partial_->append(bytes));
      finish_when_complete();
    }
  }

 private:
  bool open_next() {
    // A request can leave out bytes at its beginning alone, so only the first hint is resumed.
    if (!partial_ && done_ < group_.size()) {
      partial_.emplace(folder_, group_[done_], shape_, done_ == 0);
    }
    return partial_.has_value();
  }

  void finish_when_complete() {
    if (!partial_->complete()) return;
    partial_->commit();
    partial_.reset();
    ++done_;
  }

  const std::filesystem::path& folder_;
  const std::span<const MissingHint> group_;
  const HintShape shape_;
  std::optional<PartialHint> partial_;
  size_t done_ = 0;
};

// "0-3,17" for parts in order.
class PartsText {
 public:
  void add(uint32_t part) {
    if (!text_.empty() && part == last_ + 1) {
      text_.resize(range_end_);
      text_ += '-';
      text_ += std::to_string(part);
    } else {
      if (!text_.empty()) text_ += ',';
      text_ += std::to_string(part);
      range_end_ = text_.size();
    }
    last_ = part;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  size_t range_end_ = 0;  // where the last range's first number ends
  uint32_t last_ = 0;
};

std::string parts_text(std::span<const MissingHint> group) {
  PartsText parts;
  for (const MissingHint& hint : group) parts.add(hint.part);
  return parts.text();
}

}  // namespace

HintShape::HintShape(const Layout& layout) : mode(layout.mode()), bytes(layout.hint_part_bytes()) {
  const uint64_t bits = layout.hint_part_words() * layout.hint_bits;
  last_byte_max = static_cast<uint8_t>(0xFF >> (bytes * 8 - bits));
}

std::string hint_file_name(const Sha256Digest& hash) { return encode_hex(hash) + ".hint"; }
std::string partial_file_name(const Sha256Digest& hash) { return ".partial-" + encode_hex(hash); }

size_t HintDownload::group_size(std::span<const MissingHint> missing) const {
  PartsText parts;
  size_t count = 0;
  while (count < missing.size()) {
    parts.add(missing[count].part);
    ++count;
    if ((count + 1) * shape_.bytes > request_bytes_max_ || parts.text().size() > kPartsTextMax)
      break;
  }
  return count;
}

uint64_t HintDownload::fetch(RemoteDatabase& remote, const EpochId& epoch,
                             std::span<const MissingHint> missing,
                             const ProgressCallback& progress) {
  uint64_t received = 0;
  const uint64_t total = missing.size() * shape_.bytes;
  const Deadline::Call call(remote.deadline());
  remote.deadline().allow(total);
  std::optional<uint32_t> begun_again;  // a part, after a bad resumption
  uint64_t left = total;
  while (!missing.empty()) {
    const auto group = missing.first(group_size(missing));
    const uint64_t received_before = received;
    size_t done = 0;
    try {
      HintWriter writer(folder_, group, shape_);
      const auto write = [&](std::span<const uint8_t> bytes) {
        received += bytes.size();
        writer.write(bytes);
        done = writer.done();
        report_progress(progress,
                        {ClientStage::kFetchingHints, total - left + writer.have(), total});
      };
      const uint64_t group_bytes = group.size() * shape_.bytes;
      done = writer.done();
      if (writer.have() < group_bytes) {
        remote.fetch_hints(epoch, shape_.mode, parts_text(group), writer.have(), group_bytes,
                           write);
      }
      done = writer.done();
    } catch (const ConnectionError&) {
      if (received == received_before) throw;
    } catch (const BadResumption&) {
      // The bytes found may be an earlier server's, or damaged, so this hint is begun again from
      // nothing. Only once: a server could send a beginning and a wrong end any number of times.
      const uint32_t part = group.front().part;
      if (begun_again == part) throw;
      begun_again = part;
    }
    missing = missing.subspan(done);
    left = missing.size() * shape_.bytes;
  }
  return received;
}

}  // namespace blindfuse
