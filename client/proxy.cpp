#include "client/proxy.h"

#include <blindfuse/errors.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <string_view>

#include "src/base/ascii.h"

namespace blindfuse {
namespace {

struct Setting {
  const char* name;  // of the option or the variable
  std::string_view value;
};

// The first of these variables that is set. As in other programs, an empty one is not.
std::optional<Setting> first_set(std::initializer_list<const char*> variables) {
  for (const char* name : variables) {
    const char* const value = std::getenv(name);
    if (value != nullptr && *value != '\0') return Setting{name, value};
  }
  return std::nullopt;
}

bool is_loopback(const std::string& host) {
  if (host == "localhost") return true;
  addrinfo numeric{};
  numeric.ai_flags = AI_NUMERICHOST;  // asks no name service
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, &numeric, &found) != 0) return false;
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> address(found, freeaddrinfo);
  if (found->ai_family == AF_INET) {
    const auto* const ipv4 = reinterpret_cast<const sockaddr_in*>(found->ai_addr);
    return ntohl(ipv4->sin_addr.s_addr) >> 24 == 127;
  }
  const in6_addr& ipv6 = reinterpret_cast<const sockaddr_in6*>(found->ai_addr)->sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&ipv6) || (IN6_IS_ADDR_V4MAPPED(&ipv6) && ipv6.s6_addr[12] == 127);
}

// Whether a list such as "example.org, .internal" or "*" has this host, or a domain that it is in.
bool lists(std::string_view list, std::string_view host) {
  constexpr std::string_view kSeparators = ", \t";
  for (;;) {
    list.remove_prefix(std::min(list.find_first_not_of(kSeparators), list.size()));
    if (list.empty()) return false;
    std::string_view entry = list.substr(0, list.find_first_of(kSeparators));
    list.remove_prefix(entry.size());
    if (entry == "*") return true;
    if (entry.starts_with('.')) entry.remove_prefix(1);
    if (entry.starts_with('[') && entry.ends_with(']')) entry = entry.substr(1, entry.size() - 2);
    if (entry.empty() || entry.size() > host.size()) continue;
    const std::string_view end = host.substr(host.size() - entry.size());
    const bool is_whole =
        entry.size() == host.size() || host[host.size() - entry.size() - 1] == '.';
    if (is_whole && equal_ignoring_case(end, entry)) return true;
  }
}

[[noreturn]] void fail(const Setting& setting, const std::string& why) {
  throw InputError(std::string(setting.name) + " " + why +
                   "; name an HTTP proxy as http://HOST:PORT, or http://USER:PASSWORD@HOST:PORT");
}

std::string undo_percent_encoding(std::string_view text, const Setting& setting) {
  std::string result;
  while (!text.empty()) {
    unsigned code = static_cast<unsigned char>(text.front());
    size_t size = 1;
    if (text.front() == '%') {
      const std::string_view digits = text.substr(1, 2);
      const auto [end, error] = std::from_chars(digits.begin(), digits.end(), code, 16);
      if (digits.size() != 2 || end != digits.end())
        fail(setting, "has a % without two hex digits");
      size = 3;
    }
    result += static_cast<char>(code);
    text.remove_prefix(size);
  }
  return result;
}

Proxy parse(const Setting& setting) {
  std::string_view rest = setting.value;
  if (const size_t scheme_end = rest.find("://"); scheme_end != std::string_view::npos) {
    const std::string_view scheme = rest.substr(0, scheme_end);
    if (!equal_ignoring_case(scheme, "http")) {
      std::string why =
          "names a proxy that this client cannot use (" + std::string(scheme) + "://)";
      if (equal_ignoring_case(scheme.substr(0, 5), "socks")) {
        why += ". Tor's HTTP proxy is at its HTTPTunnelPort";
      }
      fail(setting, why);
    }
    rest.remove_prefix(scheme_end + 3);
  }
  while (rest.ends_with('/')) rest.remove_suffix(1);
  Proxy proxy;
  if (const size_t at = rest.rfind('@'); at != std::string_view::npos) {
    proxy.credentials = undo_percent_encoding(rest.substr(0, at), setting);
    // A user without a password (RFC 7617, section 2).
    if (proxy.credentials.find(':') == std::string::npos) proxy.credentials += ':';
    rest.remove_prefix(at + 1);
  }
  const size_t bracket = rest.starts_with('[') ? rest.find(']') : 0;
  if (rest.find(':', std::min(bracket, rest.size())) == std::string_view::npos) {
    fail(setting, "names a proxy without a port");
  }
  Url url;
  try {
    url = parse_url("http://" + std::string(rest));
  } catch (const InputError&) {
    fail(setting, "is not the address of a proxy");
  }
  if (!url.prefix.empty()) fail(setting, "names a proxy with a path");
  proxy.host = url.host;
  proxy.port = url.port;
  proxy.name = "the proxy http://" + std::string(rest) + " (" + setting.name + ")";
  return proxy;
}

}  // namespace

std::optional<Proxy> proxy_for(const Url& server, const std::string& option) {
  if (is_loopback(server.host)) return std::nullopt;
  if (!option.empty()) return parse({"the option --proxy", option});
  // Programs for CGI set HTTP_PROXY to a header of a request, so it has no meaning here.
  std::optional<Setting> setting =
      server.secure ? first_set({"https_proxy", "HTTPS_PROXY"}) : first_set({"http_proxy"});
  if (!setting) setting = first_set({"all_proxy", "ALL_PROXY"});
  if (!setting) return std::nullopt;
  const std::optional<Setting> direct = first_set({"no_proxy", "NO_PROXY"});
  if (direct && lists(direct->value, server.host)) return std::nullopt;
  return parse(*setting);
}

}  // namespace blindfuse
