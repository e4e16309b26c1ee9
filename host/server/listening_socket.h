// A TCP socket that clients connect to.
#pragma once

#include "host/server/listen_address.h"
#include "src/system/file.h"

namespace blindfuse {

class ListeningSocket {
 public:
  // Takes the address; clients are refused until listen(). Throws BadInput, with the address and
  // what the system says, when that cannot be: no such host, a port in use or not allowed.
  explicit ListeningSocket(const ListenAddress& address);

  // Clients can connect from now on. Throws BadInput when another program was faster.
  void listen();

  // The address as given, with the port that it got.
  const ListenAddress& address() const { return address_; }
  int fd() const { return socket_.get(); }

  // The next client, non-blocking and without Nagle's delay. Not open when there is none now: errno
  // tells.
  FileDescriptor accept() const;

  // Clients are refused from now on.
  void close() { socket_ = FileDescriptor(); }

 private:
  ListenAddress address_;
  FileDescriptor socket_;
};

}  // namespace blindfuse
