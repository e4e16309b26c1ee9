// Downloads the parts of a hint (those of all shards, or the masks of all packs) into a folder, one
// file a part. Continues where an earlier attempt stopped.
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

// The form of the parts of one layout's hint, as bit sequences.
struct HintShape {
  explicit HintShape(const Layout& layout);
  Mode mode;
  uint64_t bytes;
  uint8_t last_byte_max;  // with its unused bits zero
};

// The name of a part's file: "<64 hex digits>.hint".
std::string hint_file_name(const Sha256Digest& hash);
// The name of the file of a part whose download has begun, in the same folder.
std::string partial_file_name(const Sha256Digest& hash);

// Parts come in order, many in one request, for any key that is to be looked up. Each is written to
// a partial file named after its hash, checked, and then given its own name. An interruption does
// not remove the partial file. Files are not synced to disk.
class HintDownload {
 public:
  // Downloads into `folder`.
  HintDownload(std::filesystem::path folder, const HintShape& shape,
               uint64_t request_bytes_max = kHintRequestBytes)
      : folder_(std::move(folder)), shape_(shape), request_bytes_max_(request_bytes_max) {}

  // Fetches all of `missing`, in order of parts and with distinct hashes. Gives the call's deadline
  // the time for all of them. If the connection breaks, asks again until the deadline, as long as
  // every attempt receives something. A part that was assembled from several attempts and is wrong
  // is downloaded from its start once. Returns the bytes received. Throws the errors of
  // RemoteDatabase. Throws ProtocolError for a part that is not the one of the epoch's table or not
  // a bit sequence (this must not wait until a key of its shard is decoded: the server would see
  // the look-up fail). Throws ResourceError if the part cannot be written, and CancelledError.
  uint64_t fetch(RemoteDatabase& remote, const EpochId& epoch, std::span<const MissingHint> missing,
                 const ProgressCallback& progress);

 private:
  size_t group_size(std::span<const MissingHint> missing) const;

  std::filesystem::path folder_;
  HintShape shape_;
  uint64_t request_bytes_max_;
};

}  // namespace blindfuse
