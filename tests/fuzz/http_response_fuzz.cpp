// Responses that a client reads: however the bytes are cut, the response is the same.
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <tuple>

#include <blindfuse/errors.h>

#include "client/http_response.h"
#include "src/base/errors.h"

namespace {

using namespace blindfuse;

struct FuzzedBody : BodyReceiver {
  std::string bytes;
  void begin(int, std::optional<uint64_t>) override {}
  void receive(std::span<const uint8_t> more) override { bytes.append(more.begin(), more.end()); }
};

// Whether a whole response was read, its status, and its body.
using Read = std::tuple<bool, int, std::string>;

// The bytes come in two packets: those before `cut`, and the others.
Read read_from(std::string_view bytes, size_t cut) {
  int sockets[2];
  constexpr int kPackets = SOCK_SEQPACKET | SOCK_NONBLOCK;
  invariant(socketpair(AF_UNIX, kPackets, 0, sockets) == 0, "there are sockets");
  Deadline deadline(std::chrono::seconds(3600));
  const Deadline::Call call(deadline);
  Patience patience({});
  patience.begin(deadline);
  Connection connection(std::chrono::seconds(3600), patience);
  connection.open(FileDescriptor(sockets[0]));
  connection.begin_request();
  {
    const FileDescriptor server(sockets[1]);
    for (const std::string_view packet : {bytes.substr(0, cut), bytes.substr(cut)}) {
      if (packet.empty()) continue;
      const ssize_t sent = send(server.get(), packet.data(), packet.size(), MSG_NOSIGNAL);
      invariant(sent == static_cast<ssize_t>(packet.size()), "a socket takes a packet at once");
    }
  }
  FuzzedBody body;
  HttpReply reply;
  try {
    const bool is_whole = read_response(connection, patience, "a server", body, reply);
    invariant(reply.problem.size() <= kProblemBytesMax, "no more of an error than that");
    if (!is_whole) return {};
    return {true, reply.status, body.bytes + reply.problem};
  } catch (const ProtocolError&) {
    return {};
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kBytesMax = 50'000;  // which a socket takes
  if (size == 0 || size > kBytesMax) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  invariant(read_from(bytes, 0) == read_from(bytes, data[0] * bytes.size() / 256),
            "the same, however the bytes come");
  return 0;
}
