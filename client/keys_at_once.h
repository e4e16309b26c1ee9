// How many keys can be looked up in one piece, and how many queries can be made and sent together.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/arithmetic/layout.h"

namespace blindfuse {

// The number of queries that take 256 MiB at most, and so do their responses; at least one, and at
// most those that a server takes in a request.
size_t queries_at_once(const Layout& layout);

// The number of keys that fill whole requests and whose answers take about 256 MiB of memory, as
// a session keeps them until the last one is there (Session::look_up); at least one request's. A
// longer list is looked up in pieces, and then the server can see when a piece has been decoded.
uint64_t keys_at_once(const Layout& layout);

}  // namespace blindfuse
