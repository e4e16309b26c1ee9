// The options of a client.
#pragma once

#include <blindfuse/progress.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace blindfuse {

// Queries in one request: the most that a server accepts unless its operator sets another limit.
inline constexpr size_t kQueriesPerRequest = 16;

struct HttpOptions {
  // The deadline of a call, from its beginning to its end, with all requests that it makes and
  // repeats. The call has a second more for each 32,000 bytes that it moves: the hints that it
  // downloads, its queries and their responses, in the sizes that the manifest and the table
  // announce. The time of the client's own computations does not count. No silence of the server
  // may be longer than this. Calls of several threads take turns, and the deadline of each begins
  // with its turn.
  std::chrono::seconds timeout{60};
  std::optional<std::string> ca_file;  // trusted certificates (PEM); without it: the system's
  std::optional<std::string> api_key;  // sent with every request
  // An HTTP proxy, "http://HOST:PORT" or "http://USER:PASSWORD@HOST:PORT". Without it: the proxy
  // that the environment names (https_proxy, all_proxy, no_proxy; for http servers, http_proxy), or
  // none. A server at an address of this machine is always reached without a proxy.
  std::optional<std::string> proxy;
};

// An option that is set has a value: connect() throws InputError for an empty text.
struct ClientOptions {
  std::filesystem::path
      cache_folder;           // for all databases; empty: ~/.cache/blindfuse, or as XDG says
  unsigned thread_count = 0;  // to prepare queries with; 0: one a processor; "packed" takes one
  // Queries made in one pass when none are left. 0: those that the call needs, 16 at most, and one
  // by one where a query asks for several keys.
  size_t prepare_batch = 1;
  HttpOptions http;
  // The public key that signs the database, 64 lower-case hex digits. The client then refuses a
  // manifest with SignatureError if it is not signed, if another key signed it, if its signature is
  // wrong, if an older one is served than was seen before, or if two manifests have the same
  // sequence number. Without it, the client remembers the key of the first manifest, and
  // SignerStatus::warning says when the key changes.
  std::optional<std::string> server_key;
  bool allow_rollback = false;  // take a manifest that is older than the newest one seen
  // "hint" or "packed": the client refuses a database in another mode before it asks for anything.
  // The server names the mode, and the mode determines the assumption that secrecy rests on. This
  // option lets the client decide. Without it: either mode.
  std::optional<std::string> mode;
  // The client refuses a database that needs more before it fetches anything. The limits are for
  // the hints on disk; and for one query, one response, or the table of shards and packs. The
  // client also refuses more than 65,536 masks.
  uint64_t hint_bytes_max = uint64_t{64} << 30;
  uint64_t transfer_bytes_max = uint64_t{256} << 20;
  // Hints of at most this many bytes in all are kept in memory from the first look-up on. Larger
  // hints are read and checked in every look-up, all of them.
  uint64_t hint_memory_bytes_max = uint64_t{1} << 30;
  ProgressCallback progress;
};

}  // namespace blindfuse
