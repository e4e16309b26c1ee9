// Private look-ups in one database.
//
//   auto words = blindfuse::Client::connect("http://127.0.0.1:8080");
//   std::optional<std::string> value = words.get("serendipity");
//
// The server learns how many keys are asked for and when; not which, and not whether they are
// there.
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

// Any number of threads may use one client at once, except to move or destroy it: keys that wait
// together are asked for together, in one request of up to kQueriesPerRequest. The progress
// callback is called by whichever thread does the work, one at a time; it must not call the client.
//
// get, get_many and look_up fetch the hints first when there are none yet, and when the server no
// longer serves the epoch of those that there are; sync asks for the current epoch at once.
//
// A forked child has a copy of the queries made ahead, which must not be sent twice: there every
// call but prepared_count() of a client made before throws InputError, and destroying it leaves the
// parent's connection as it is. This holds for children of fork(), _Fork() and clone() in any PID
// namespace; where the kernel has no MADV_WIPEONFORK (before Linux 4.14), for those of fork().
//
// Every call may be stopped, from another thread, through its stop token: it throws CancelledError
// within a fraction of a second (except while the system's name service looks for the server), and
// the client can be used again, as after any error (blindfuse/errors.h). What other threads asked
// for in the same request is asked for again. By itself a call ends at its deadline
// (HttpOptions::timeout), with ConnectionError.
class BLINDFUSE_API Client {
 public:
  // Checks that the server answers with a manifest. Throws InputError for a malformed URL, and what
  // blindfuse/errors.h tells for what the server does.
  static Client connect(std::string_view url, ClientOptions options = {},
                        std::stop_token stop = {});

  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;
  ~Client();

  // Brings the hints up to the server's current epoch; with `verify`, checks every cached one
  // first.
  SyncResult sync(bool verify = false, std::stop_token stop = {});

  // Makes `count` more queries ahead, in one pass. Memory: 4 row_count bytes each, and 48 KiB more
  // where DatabaseInfo::mode is "packed".
  void prepare(size_t count, std::stop_token stop = {});
  size_t prepared_count() const;

  // The value of a key, or nothing when it is not there. A key is a byte string; in an index
  // database, a decimal number.
  std::optional<std::string> get(std::string_view key, std::stop_token stop = {});
  // The value of entry i of an index database. InputError for a keyword database.
  std::optional<std::string> get(uint64_t i, std::stop_token stop = {});

  // Several keys, in their order. Every key is checked before any is asked for.
  std::vector<std::optional<std::string>> get_many(std::span<const std::string> keys,
                                                   std::stop_token stop = {});
  // The same, with what each look-up took.
  std::vector<Answer> look_up(std::span<const std::string> keys, std::stop_token stop = {});
  // Entries of an index database. InputError for a keyword database.
  std::vector<Answer> look_up(std::span<const uint64_t> entries, std::stop_token stop = {});

  // The signer of the database, as of the last manifest that was fetched, the first by connect().
  // Asks the server nothing.
  SignerStatus signer() const;

  // What is known of the database: of the epoch whose hints are there, which are fetched when there
  // are none.
  DatabaseInfo database(std::stop_token stop = {});

 private:
  explicit Client(std::unique_ptr<SharedSession> session);

  std::unique_ptr<SharedSession> session_;
};

}  // namespace blindfuse
