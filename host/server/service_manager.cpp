#include "host/server/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "src/system/file.h"

namespace blindfuse {

void notify_service_manager(std::string_view state) {
  const char* path = std::getenv("NOTIFY_SOCKET");
  if (path == nullptr || (path[0] != '/' && path[0] != '@')) return;
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  const size_t length = std::strlen(path);
  if (length >= sizeof name.sun_path) return;
  std::memcpy(name.sun_path, path, length);
  // An abstract socket's name begins with a zero byte, written as @.
  if (name.sun_path[0] == '@') name.sun_path[0] = '\0';
  const FileDescriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) return;
  (void)!sendto(socket.get(), state.data(), state.size(), MSG_NOSIGNAL,
                reinterpret_cast<const sockaddr*>(&name),
                static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length));
}

}  // namespace blindfuse
