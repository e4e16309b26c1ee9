// What a client can fail with, beyond the project's BadInput (a key, a flag, a URL is wrong) and
// EngineTrouble (memory, disk). Every message is one line that names the cure.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

#include "src/errors.h"

namespace blindfuse {

// No server answered, or the connection broke.
class ConnectionTrouble : public EngineTrouble {
 public:
  using EngineTrouble::EngineTrouble;
};

// What answered is no blindfuse server, or one that breaks the protocol: its answer was thrown
// away.
class ProtocolViolation : public BadInput {
 public:
  using BadInput::BadInput;
};

// The server answered with an error. what() holds its own words.
class ServerRefusal : public EngineTrouble {
 public:
  ServerRefusal(int status, const std::string& message) : EngineTrouble(message), status_(status) {}
  int status() const { return status_; }

 private:
  int status_;
};

// 404 or 410: the server does not serve this epoch, any more or yet.
class EpochGone : public ServerRefusal {
 public:
  using ServerRefusal::ServerRefusal;
};

// 503: its queue is full.
class ServerBusy : public ServerRefusal {
 public:
  ServerBusy(const std::string& message, std::optional<uint64_t> retry_after_s)
      : ServerRefusal(503, message), retry_after_s_(retry_after_s) {}
  std::optional<uint64_t> retry_after_s() const { return retry_after_s_; }

 private:
  std::optional<uint64_t> retry_after_s_;
};

// A file of the cache is missing or is not what was downloaded.
class AlteredCache : public BadInput {
 public:
  using BadInput::BadInput;
};

// The progress callback said stop.
class Cancelled : public std::runtime_error {
 public:
  Cancelled() : std::runtime_error("cancelled") {}
};

}  // namespace blindfuse
