// One look-up in a database: from keys to queries, and from responses to values.
#pragma once

#include <blindfuse/results.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client/batch_plan.h"
#include "client/prepared_query.h"
#include "client/secret.h"

namespace blindfuse {

class Session;

// Asks for keys in steps, so that a caller can prepare queries between the requests.
//
// The server's view never depends on a key: all hints of an epoch are checked before the first
// query to it, all requests are sent before the first answer is decoded, the connection is closed
// between the two, and decoding does the same work for every key (CheckedHints).
//
// If requests of the database are for K keys, n keys take ceil(n / K) requests of one query each,
// whatever the keys are (BatchPlan). All buckets of a query are decoded in the same way, with or
// without a key. A request that is repeated asks for the same keys. A key that found no bucket in
// any of the requests is not asked for (Answer::asked).
class LookUp {
 public:
  // Finds the places of all keys, which stay as they are until this ends, and so does the session.
  // Throws InputError if one of them is not a valid key of the database.
  LookUp(Session& session, std::span<const std::string_view> keys);
  ~LookUp();
  LookUp(const LookUp&) = delete;
  LookUp& operator=(const LookUp&) = delete;

  size_t queries_left() const;

  // Asks with up to `count` more queries, and returns how many are left then. If the epoch changes,
  // all keys are asked for again, once: then more may be left than before. After an error the same
  // step can be taken again.
  size_t ask(size_t count);

  // Decodes the answers once no query is left.
  std::vector<Answer> decode() &&;

 private:
  struct Request;

  void plan();
  Request encrypt(size_t count);
  void send(Request& request);
  void decode_values(std::span<Answer> answers);
  void note_costs(double decode_seconds, std::span<Answer> answers) const;

  Session& session_;
  const std::span<const std::string_view> keys_;
  std::string epoch_;               // of what follows
  std::optional<BatchPlan> batch_;  // if requests are for several keys
  SecretBuffer<KeyPlace> places_;   // otherwise, of all keys
  std::vector<Request> requests_;   // that were answered
  size_t queries_done_ = 0;         // in these requests
  bool has_synced_ = false;         // because the server no longer had the epoch
};

// The values of answers. Throws NotAskedError if keys were not asked for.
std::vector<std::optional<std::string>> values_of(std::vector<Answer> answers);

// The number of queries that take 256 MiB at most, and so do their responses; at least one, and at
// most those that a server takes in a request.
size_t queries_at_once(const Layout& layout);

// The number of keys that fill whole requests and whose answers take about 256 MiB of memory, as a
// look-up keeps them until the last one is there; at least one request's. A longer list is looked
// up in pieces, and then the server can see when a piece has been decoded.
uint64_t keys_at_once(const Layout& layout);

}  // namespace blindfuse
