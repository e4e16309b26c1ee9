// Reads responses (HTTP/1.1, RFC 9112), by Boost.Beast's parser.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "client/connection.h"
#include "client/deadline.h"
#include "client/transport.h"

namespace blindfuse {

// The limit of a head with the interim ones before it, of a line of a chunk, and of all trailers.
inline constexpr size_t kHeadBytesMax = 65'536;
// The limit from the first byte of a head to its last. A head comes in a packet or two, and 65,536
// bytes of it in two seconds at kBytesPerSecondMin. The rest is for networks that stall, such as
// anonymity networks. The time until the first byte is limited only by the call: a server sends the
// head of an answer after its engine has computed all of it.
inline constexpr std::chrono::seconds kHeadTimeout{20};

// Reads the final response to a request into `reply`, and its body into `receiver` or
// reply.problem. Skips interim responses (1xx) and trailers. Closes the connection if it cannot be
// used again. Returns false if no complete response came: the connection broke, `patience` gave up,
// or the bytes are not HTTP. reply.status is then 0 unless a status line came. Throws ProtocolError
// if a response breaks HTTP, and what `receiver` throws. `at` names the server in messages.
bool read_response(Connection& connection, Patience& patience, const std::string& at,
                   BodyReceiver& receiver, HttpReply& reply);

// Reads the response to CONNECT, after whose head the tunnel begins. Returns and throws as above.
bool read_tunnel_response(Connection& connection, Patience& patience, const std::string& at,
                          HttpReply& reply);

}  // namespace blindfuse
