#include "host/server/http/client_address.h"

#include <arpa/inet.h>

#include <algorithm>

namespace blindfuse::http {

std::string client_network(std::string_view address) {
  const std::string text(address.substr(0, address.find('%')));  // without the interface
  in_addr address4{};
  in6_addr address6{};
  if (inet_pton(AF_INET6, text.c_str(), &address6) == 1) {
    if (!IN6_IS_ADDR_V4MAPPED(&address6)) {
      std::fill_n(address6.s6_addr + 8, 8, uint8_t{0});
      char network[INET6_ADDRSTRLEN];
      return inet_ntop(AF_INET6, &address6, network, sizeof network) + std::string("/64");
    }
    std::copy_n(address6.s6_addr + 12, 4, reinterpret_cast<uint8_t*>(&address4));
  } else if (inet_pton(AF_INET, text.c_str(), &address4) != 1) {
    return "";
  }
  char host[INET_ADDRSTRLEN];
  return inet_ntop(AF_INET, &address4, host, sizeof host);
}

}  // namespace blindfuse::http
