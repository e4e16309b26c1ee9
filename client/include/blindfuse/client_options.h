// What a client may be told beforehand.
#pragma once

#include <blindfuse/progress.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

namespace blindfuse {

// Queries in one request: what a server takes unless its operator says otherwise.
inline constexpr size_t kQueriesPerRequest = 16;

struct HttpOptions {
  // The deadline of a call, from its beginning to its end, with all requests that it makes and
  // repeats. The call has a second more for each 32,000 bytes that it moves, as the manifest and
  // the table announce them: the hints that it downloads, its queries and their responses. What the
  // client computes does not count. No silence of the server may be longer than this. Calls of
  // several threads take turns, and the deadline of each begins with its turn.
  std::chrono::seconds timeout{60};
  std::string ca_file;  // trusted certificates (PEM); empty: the system's
  std::string api_key;  // sent with every request, unless empty
};

struct ClientOptions {
  std::filesystem::path
      cache_folder;           // for all databases; empty: ~/.cache/blindfuse, or as XDG says
  unsigned thread_count = 0;  // to prepare queries with; 0: one a processor; "packed" takes one
  size_t prepare_batch = 1;   // queries made in one pass when none are left
  HttpOptions http;
  // The public key that signs the database, 64 lower-case hex digits. A manifest is then refused
  // with SignatureError when it is not signed, or by another key, or wrongly, when an older one is
  // served than was seen before, and when there are two of one number. Empty: the key of the first
  // manifest is remembered, and SignerStatus::warning says when it changes.
  std::string server_key;
  bool allow_rollback = false;  // take a manifest that is older than the newest one seen
  // "hint" or "packed": a database in another mode is refused before anything is asked. The server
  // names the mode, and with it what secrecy rests on; this is the client's say. Empty: either.
  std::string mode;
  // A database that needs more is refused before anything is fetched: hints on disk, and one query
  // or response.
  uint64_t hint_bytes_max = uint64_t{64} << 30;
  uint64_t transfer_bytes_max = uint64_t{1} << 30;
  // Hints of at most this many bytes in all are kept in memory from the first look-up on. Larger
  // ones are read and checked, all of them, in every look-up.
  uint64_t hint_memory_bytes_max = uint64_t{1} << 30;
  ProgressCallback progress;
};

}  // namespace blindfuse
