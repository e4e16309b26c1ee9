// Fetches the parts of a hint (those of all shards, or the masks of all packs) into a folder, a
// file a part, and goes on where an earlier attempt stopped.
#pragma once

#include <blindfuse/progress.h>

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "client/remote_database.h"
#include "src/arithmetic/layout.h"
#include "src/protocol/sha256.h"

namespace blindfuse {

inline constexpr uint64_t kHintRequestBytes = uint64_t{32} << 20;

struct MissingHint {
  uint32_t part = 0;  // a shard, or a pack
  Sha256Digest hash{};
};

// What the parts of one layout's hint look like, as bit sequences.
struct HintShape {
  explicit HintShape(const Layout& layout);
  Mode mode;
  uint64_t bytes;
  uint8_t last_byte_max;  // with its unused bits zero
};

// The name of a part's file: "<64 hex digits>.hint".
std::string hint_file_name(const Sha256Digest& hash);
// Of one whose download has begun, in the same folder.
std::string partial_file_name(const Sha256Digest& hash);

// Parts come in their order, many to a request, whatever key is going to be asked for. Each is
// written to a partial file named after its hash, which an interruption leaves behind, checked, and
// then given its own name. Files are not forced to disk.
class HintDownload {
 public:
  // Into `folder`.
  HintDownload(std::filesystem::path folder, const HintShape& shape,
               uint64_t request_bytes_max = kHintRequestBytes)
      : folder_(std::move(folder)), shape_(shape), request_bytes_max_(request_bytes_max) {}

  // Fetches all of `missing`, in order of parts and with distinct hashes. Asks again when the
  // connection breaks, as long as every attempt brings something and the deadline of the call,
  // which is given the time for all of them, has not passed. A part that was put together from
  // several attempts and is wrong is begun again once. Returns the bytes received. Throws what
  // RemoteDatabase does, ProtocolError for a part that is not the one of the epoch's table or
  // not a bit sequence (which must not wait until a key of its shard is decoded: the server would see
  // the look-up fail), ResourceError when it cannot be written, CancelledError.
  uint64_t fetch(RemoteDatabase& remote, const EpochId& epoch, std::span<const MissingHint> missing,
                 const ProgressCallback& progress);

 private:
  size_t group_size(std::span<const MissingHint> missing) const;

  std::filesystem::path folder_;
  HintShape shape_;
  uint64_t request_bytes_max_;
};

}  // namespace blindfuse
