// Private look-ups in one database.
//
//   auto words = blindfuse::Client::connect("http://127.0.0.1:8080");
//   std::optional<std::string> value = words.get("serendipity");
//
// The server learns how many keys are asked for, and when. It does not learn which keys, or whether
// they are there.
#pragma once

#include <blindfuse/client_options.h>
#include <blindfuse/errors.h>
#include <blindfuse/results.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace blindfuse {

class SharedSession;

// Any number of threads may use one client at once, except to move or destroy it. Keys that wait at
// the same time are asked for together, in one request of up to kQueriesPerRequest, or of up to
// DatabaseInfo::keys_per_request where one query asks for several. The progress callback is called
// by the thread that does the work, one thread at a time. It must not call the client.
//
// get, get_many and look_up first fetch the hints if there are none yet, or if the server no longer
// serves their epoch. sync asks for the current epoch at once.
//
// A forked child has a copy of the queries made ahead, which must not be sent twice. There, every
// call except prepared_count() of a client made before the fork throws InputError, and its
// destruction leaves the parent's connection as it is. This holds for children of fork(), _Fork()
// and clone() in any PID namespace. If the kernel has no MADV_WIPEONFORK (before Linux 4.14), it
// holds for those of fork().
//
// Another thread can stop every call through the call's stop token. The call then throws
// CancelledError within a fraction of a second (except while the system's name service looks for
// the server). The client can be used again, as after any error (blindfuse/errors.h). Keys of other
// threads in the same request are asked for again. Without a stop, a call ends at its deadline
// (HttpOptions::timeout), with ConnectionError.
class BLINDFUSE_API Client {
 public:
  // Checks that the server answers with a manifest. Throws InputError for a malformed URL, and the
  // errors of blindfuse/errors.h for a failure of the server or its answer.
  static Client connect(std::string_view url, ClientOptions options = {},
                        std::stop_token stop = {});

  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;
  ~Client();

  // Brings the hints up to the server's current epoch. With `verify`, first checks every cached
  // hint.
  SyncResult sync(bool verify = false, std::stop_token stop = {});

  // Makes `count` more queries ahead, in one pass. Each takes 4 row_count bytes of memory for each
  // bucket, and 24 KiB more if DatabaseInfo::mode is "packed"; with two levels also 4 bytes for
  // each group of shards, and 24 KiB more with a short key.
  void prepare(size_t count, std::stop_token stop = {});
  size_t prepared_count() const;

  // The number of calls for look-ups that wait for another thread's turn to end. A call for several
  // keys counts once.
  size_t waiting_count() const;

  // The value of a key, or nothing if the key is not there. A key is a byte string. In an index
  // database it is a decimal number.
  std::optional<std::string> get(std::string_view key, std::stop_token stop = {});
  // The value of entry i of an index database. Throws InputError for a keyword database.
  std::optional<std::string> get(uint64_t i, std::stop_token stop = {});

  // The values of several keys, in the order of the keys. Every key is checked before any is asked
  // for. The number of requests depends on the number of keys alone. Where one query asks for
  // several keys, a key that is given several times is asked for once, and some keys may find no
  // place: get and get_many then throw NotAskedError, and look_up says which they are.
  std::vector<std::optional<std::string>> get_many(std::span<const std::string> keys,
                                                   std::stop_token stop = {});
  // Also reports the cost of each look-up.
  std::vector<Answer> look_up(std::span<const std::string> keys, std::stop_token stop = {});
  // Looks up entries of an index database. Throws InputError for a keyword database.
  std::vector<Answer> look_up(std::span<const uint64_t> entries, std::stop_token stop = {});

  // The signer of the database, according to the last manifest that was fetched. connect() fetches
  // the first. Sends nothing to the server.
  SignerStatus signer() const;

  // The requests and bytes of the calls that have ended. Sends nothing to the server.
  TransferStats transfers() const;

  // The properties of the database in the epoch of the client's hints. Fetches the hints if there
  // are none.
  DatabaseInfo database(std::stop_token stop = {});

 private:
  explicit Client(std::unique_ptr<SharedSession> session);

  std::unique_ptr<SharedSession> session_;
};

}  // namespace blindfuse
