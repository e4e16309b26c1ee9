// What a client can fail with. Every message is one line that names the cure.
//
//   BadInput               a key, an option, or a URL is wrong
//     ProtocolViolation    what answers is no blindfuse server, or breaks the protocol
//     AlteredCache         a downloaded hint is missing or altered
//   EngineTrouble          memory, a disk
//     ConnectionTrouble    no server answers, the connection broke, or the call took too long
//     ServerRefusal        the server answers with an error
//       EpochGone, ServerBusy
//   Cancelled              as the caller asked
#pragma once

#include <blindfuse/error_kinds.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

namespace blindfuse {

// No server answered, the connection broke, or the deadline of the call has passed.
class BLINDFUSE_API ConnectionTrouble : public EngineTrouble {
 public:
  using EngineTrouble::EngineTrouble;
};

// What answered is no blindfuse server, or one that breaks the protocol: its answer was thrown
// away.
class BLINDFUSE_API ProtocolViolation : public BadInput {
 public:
  using BadInput::BadInput;
};

// The server answered with an error. what() holds its own words.
class BLINDFUSE_API ServerRefusal : public EngineTrouble {
 public:
  ServerRefusal(int status, const std::string& message) : EngineTrouble(message), status_(status) {}
  int status() const { return status_; }

 private:
  int status_;
};

// 404 or 410: the server does not serve this epoch, any more or yet.
class BLINDFUSE_API EpochGone : public ServerRefusal {
 public:
  using ServerRefusal::ServerRefusal;
};

// 503: its queue is full.
class BLINDFUSE_API ServerBusy : public ServerRefusal {
 public:
  ServerBusy(const std::string& message, std::optional<uint64_t> retry_after_s)
      : ServerRefusal(503, message), retry_after_s_(retry_after_s) {}
  std::optional<uint64_t> retry_after_s() const { return retry_after_s_; }

 private:
  std::optional<uint64_t> retry_after_s_;
};

// A file of the cache is missing or is not what was downloaded.
class BLINDFUSE_API AlteredCache : public BadInput {
 public:
  using BadInput::BadInput;
};

// A stop token or the progress callback said stop.
class BLINDFUSE_API Cancelled : public std::runtime_error {
 public:
  Cancelled() : std::runtime_error("cancelled") {}
};

}  // namespace blindfuse
