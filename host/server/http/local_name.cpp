#include "host/server/http/local_name.h"

#include <arpa/inet.h>

#include <string>

#include "src/base/ascii.h"

namespace blindfuse::http {

bool is_local_name(std::string_view host) {
  if (host.starts_with('[')) {
    const std::string name(host.substr(1, host.find(']') - 1));
    in6_addr address{};
    return inet_pton(AF_INET6, name.c_str(), &address) == 1;
  }
  const std::string name(host.substr(0, host.find(':')));
  in_addr address{};
  return name.empty() || equal_ignoring_case(name, "localhost") ||
         inet_pton(AF_INET, name.c_str(), &address) == 1;
}

}  // namespace blindfuse::http
