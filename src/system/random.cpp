#include "src/system/random.h"

#include <sys/random.h>

#include <cerrno>

#include "src/base/errors.h"

namespace blindfuse {

void fill_from_system(std::span<uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = getrandom(bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) throw ResourceError("the operating system gives no random bytes (getrandom)");
    bytes = bytes.subspan(static_cast<size_t>(got));
  }
}

}  // namespace blindfuse
