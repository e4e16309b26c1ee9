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
  // Takes the address. Clients are refused until listen(). Throws InputError, with the address and
  // the system's message, if that is impossible: there is no such host, or the port is in use or
  // not allowed. A UNIX socket on which no process listens any more is replaced. One on which a
  // process listens, or a file of another kind, is not.
  explicit ListeningSocket(const ListenAddress& address);
  // Removes the file of a UNIX socket, if it is still this socket's.
  ~ListeningSocket();
  ListeningSocket(ListeningSocket&&) noexcept = default;
  ListeningSocket& operator=(ListeningSocket&&) = delete;

  // Clients can connect from now on. Throws InputError if another program was faster.
  void listen();

  // The address as given, with the port that it got.
  const ListenAddress& address() const { return address_; }
  // Whether only programs on this machine can connect: a UNIX socket or a loopback address.
  bool is_local() const;
  int fd() const { return socket_.get(); }

  struct Client {
    FileDescriptor socket;
    std::string peer;  // its address, without the port; "unix"
  };
  // The next client, non-blocking and without Nagle's delay. Not open if there is none now; errno
  // then has the reason.
  Client accept() const;

  // Clients are refused from now on.
  void close();

 private:
  ListenAddress address_;
  FileDescriptor socket_;
  std::optional<std::pair<dev_t, ino_t>> file_;  // of a UNIX socket that listens
};

}  // namespace blindfuse::http
