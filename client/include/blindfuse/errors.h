// The errors of a client. Every message is one line that names the cure.
//
//   InputError             a key, an option, or a URL is wrong
//     ProtocolError        what answers is not a blindfuse server, or breaks the protocol
//       SignatureError     the database's signature is not what it has to be
//     CacheError           a downloaded hint is missing or altered
//   ResourceError          memory or a disk failed
//     ConnectionError      no server answers, the connection broke, or the call took too long
//     ServerError          the server answers with an error
//       EpochGoneError, ServerBusyError
//     NotAskedError        requests for several keys had no place for some
//   CancelledError         the caller stopped the call
#pragma once

#include <blindfuse/error_kinds.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

namespace blindfuse {

// There was no answer from a server, the connection broke, or the deadline of the call has passed.
class BLINDFUSE_API ConnectionError : public ResourceError {
 public:
  using ResourceError::ResourceError;
};

// The answer did not come from a blindfuse server, or the server broke the protocol. The client has
// thrown the answer away.
class BLINDFUSE_API ProtocolError : public InputError {
 public:
  using InputError::InputError;
};

// The manifest is not signed, or its signature is wrong or of another key than
// ClientOptions::server_key, or the manifest is older than one seen before, or there is another
// manifest with its number. The client has used nothing of it.
class BLINDFUSE_API SignatureError : public ProtocolError {
 public:
  using ProtocolError::ProtocolError;
};

// The server answered with an error. what() holds the server's message.
class BLINDFUSE_API ServerError : public ResourceError {
 public:
  ServerError(int status, const std::string& message) : ResourceError(message), status_(status) {}
  int status() const { return status_; }

 private:
  int status_;
};

// 404 or 410: the server does not serve this epoch yet, or does not serve it any more.
class BLINDFUSE_API EpochGoneError : public ServerError {
 public:
  using ServerError::ServerError;
};

// 503 or 429: the server is busy, or this client asks too often for it.
class BLINDFUSE_API ServerBusyError : public ServerError {
 public:
  ServerBusyError(const std::string& message, std::optional<uint64_t> retry_after_s,
                  int status = 503)
      : ServerError(status, message), retry_after_s_(retry_after_s) {}
  std::optional<uint64_t> retry_after_s() const { return retry_after_s_; }

 private:
  std::optional<uint64_t> retry_after_s_;
};

// A file of the cache is missing, or differs from the download.
class BLINDFUSE_API CacheError : public InputError {
 public:
  using InputError::InputError;
};

// Each request is for several keys, and some of the call's keys were not asked for, as others took
// their places. The number of requests does not depend on keys, so there was no further one.
// look_up() says which keys were not asked for (Answer::asked). Ask for them with the keys of your
// next call, or alone if the server may see one more request. The same list would leave them out
// again.
class BLINDFUSE_API NotAskedError : public ResourceError {
 public:
  // count: the keys that were not asked for. key_count: all keys of the call.
  NotAskedError(size_t count, size_t key_count)
      : ResourceError(std::to_string(count) + " of " + std::to_string(key_count) +
                      (key_count == 1 ? " key" : " keys") + (count == 1 ? " was" : " were") +
                      " not asked for, as others took the places in the requests: ask for them "
                      "with the keys of your next call"),
        count_(count) {}
  size_t count() const { return count_; }

 private:
  size_t count_;
};

// A stop token or the progress callback stopped the call.
class BLINDFUSE_API CancelledError : public std::runtime_error {
 public:
  CancelledError() : std::runtime_error("cancelled") {}
};

}  // namespace blindfuse
