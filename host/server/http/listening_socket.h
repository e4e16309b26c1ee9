// A socket that clients connect to: TCP, or a UNIX socket in the file system.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>

#include "host/server/http/listen_address.h"
#include "src/system/file.h"

namespace blindfuse::http {

class ListeningSocket {
 public:
  // Takes the address; clients are refused until listen(). Throws InputError, with the address and
  // what the system says, when that cannot be: no such host, a port in use or not allowed. A UNIX
  // socket on which no process listens any more is replaced. One on which a process listens, or a
  // file of another kind, is not.
  explicit ListeningSocket(const ListenAddress& address);
  // Removes the file of a UNIX socket, if it is still this one's.
  ~ListeningSocket();
  ListeningSocket(ListeningSocket&&) noexcept = default;
  ListeningSocket& operator=(ListeningSocket&&) = delete;

  // Clients can connect from now on. Throws InputError when another program was faster.
  void listen();

  // The address as given, with the port that it got.
  const ListenAddress& address() const { return address_; }
  // Whether programs on this machine alone can connect: a UNIX socket or a loopback address.
  bool is_local() const;
  int fd() const { return socket_.get(); }

  struct Client {
    FileDescriptor socket;
    std::string peer;  // its address, without the port; "unix"
  };
  // The next client, non-blocking and without Nagle's delay. Not open when there is none now: errno
  // tells.
  Client accept() const;

  // Clients are refused from now on.
  void close();

 private:
  ListenAddress address_;
  FileDescriptor socket_;
  std::optional<std::pair<dev_t, ino_t>> file_;  // of a UNIX socket that listens
};

}  // namespace blindfuse::http
