
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "host/server/http/listening_socket.h"
#include "src/base/errors.h"

namespace blindfuse {
namespace {

TEST(ListenAddress, ReadsHostAndPort) {
  EXPECT_EQ(http::parse_listen_address("127.0.0.1:8080"), (http::ListenAddress{"127.0.0.1", 8080}));
  EXPECT_EQ(http::parse_listen_address("localhost:0"), (http::ListenAddress{"localhost", 0}));
  EXPECT_EQ(http::parse_listen_address("[::1]:65535"), (http::ListenAddress{"::1", 65'535}));
  for (const char* text : {"127.0.0.1:8080", "[::1]:0"}) {
    EXPECT_EQ(http::format_listen_address(http::parse_listen_address(text)), text);
  }
}

TEST(ListenAddress, RefusesAnythingElse) {
  for (const char* text : {"", ":", "8080", "localhost", ":8080", "localhost:", "localhost:x",
                           "localhost:-1", "localhost:65536", "localhost: 80", "::1:8080", "[::1]",
                           "[]:80", "[localhost]:80", "[::1:80", "localhost:80/"}) {
    EXPECT_THROW(http::parse_listen_address(text), InputError) << text;
  }
}

// Whoever has one IPv6 address has 2^64 of them.
TEST(ClientNetwork, IsAnAddressOrAPrefix) {
  const std::map<std::string, std::string> networks = {
      {"192.0.2.1", "192.0.2.1"},
      {"::ffff:192.0.2.1", "192.0.2.1"},
      {"2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"},
      {"2001:DB8:1:2::", "2001:db8:1:2::/64"},
      {"::1", "::/64"},
      {"fe80::1%eth0", "fe80::/64"},
      {"", ""},
      {"unix", ""},
      {"-", ""},
      {"192.0.2", ""},
      {"192.0.2.1:80", ""},
      {"[::1]", ""},
      {"localhost", ""},
  };
  for (const auto& [address, network] : networks) {
    EXPECT_EQ(http::client_network(address), network) << address;
  }
}

TEST(ListeningSocket, GetsAFreePortAndHoldsIt) {
  http::ListeningSocket first({"127.0.0.1", 0});
  first.listen();
  EXPECT_NE(first.address().port, 0);
  try {
    const http::ListeningSocket second(first.address());
    ADD_FAILURE() << "two sockets listen on one port";
  } catch (const InputError& error) {
    EXPECT_EQ(std::string(error.what()),
              "cannot listen on 127.0.0.1:" + std::to_string(first.address().port) +
                  ": Address already in use");
  }
}

TEST(ListeningSocket, RefusesAddressesThatAreNotOurs) {
  EXPECT_THROW(http::ListeningSocket({"192.0.2.1", 0}), InputError);
  EXPECT_THROW(http::ListeningSocket({"no-such-host.invalid", 0}), InputError);
}

}  // namespace
}  // namespace blindfuse
