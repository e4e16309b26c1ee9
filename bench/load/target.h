// The address of the loaded server.
#pragma once

#include <memory>
#include <string>

#include "bench/load/options.h"
#include "client/transport.h"
#include "client/url.h"

namespace blindfuse::load {

struct Target {
  Url url;             // of http://localhost for a UNIX socket
  std::string socket;  // the path of a UNIX socket; empty for a URL

  // As it was written, but the same for all ways to write one address.
  std::string text() const { return socket.empty() ? url.text() : "unix:" + socket; }
  // As the Host header has it.
  std::string host_and_port() const;
};

// Throws UsageError for text that is neither a URL nor "unix:/path".
Target parse_target(const std::string& text);

// The first line of options.api_key_file, or "" without one. Throws InputError when it has none.
std::string api_key_of(const Options& options);

// For requests that are not part of the load.
std::unique_ptr<Transport> transport_to(const Target& target, const Options& options);

}  // namespace blindfuse::load
