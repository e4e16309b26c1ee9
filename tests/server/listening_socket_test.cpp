// Sockets of TCP and in the file system, and their addresses.
#include "host/server/http/listening_socket.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <map>

#include "src/base/errors.h"
#include "tests/server/running_server.h"
#include "tests/support.h"

namespace blindfuse::server_testing {
namespace {

using ::testing::HasSubstr;

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

// Two that take one free port at the same time: one of them serves, the other is told. No client
// gets in before that.
TEST(ListeningSocket, HoldsAPortThatAnotherMayTakeMeanwhile) {
  const http::ListenAddress address = http::ListeningSocket({"127.0.0.1", 0}).address();
  EXPECT_NE(address.port, 0);
  http::ListeningSocket one(address);
  http::ListeningSocket other(address);
  EXPECT_THROW(LoopbackClient("http://" + http::format_listen_address(address)),
               std::runtime_error);
  one.listen();
  EXPECT_THROW(other.listen(), InputError);
  EXPECT_THROW(http::ListeningSocket{address}, InputError);
}

TEST(ListeningSocket, RefusesAddressesThatAreNotOurs) {
  EXPECT_THROW(http::ListeningSocket({"192.0.2.1", 0}), InputError);
  EXPECT_THROW(http::ListeningSocket({"no-such-host.invalid", 0}), InputError);
}

class UnixSocket : public RunningServer {
 protected:
  std::string path() const { return folder_ / "socket"; }
  http::ListenAddress address() const { return http::parse_listen_address("unix:" + path()); }
  bool exists() const { return std::filesystem::exists(std::filesystem::symlink_status(path())); }
  void serve() { start(default_options(), {.batch_max = 4, .queue_max = 8}, address()); }

  // As a server that was killed leaves it.
  void abandon() const {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    path().copy(name.sun_path, sizeof name.sun_path - 1);
    const FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(bind(socket.get(), reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
    listen(socket.get(), 1);
  }

  static std::string refusal(const http::ListenAddress& address) {
    return support::input_error_of([&] { http::ListeningSocket(address).listen(); });
  }
};

TEST_F(UnixSocket, IsServedLikeAPort) {
  serve();
  EXPECT_EQ(url(), "unix:" + path());
  EXPECT_EQ(ask(get_request(epoch_path("/hint"))).body, hints_of(database_, 0, kShards - 1));
  expect_refused(post_request("/nowhere", "text/plain", std::string(10'000, 'x')), 404,
                 "unknown-route");
  expect_healthy();
}

TEST_F(UnixSocket, IsGoneWhenTheServerIs) {
  serve();
  EXPECT_TRUE(exists());
  const std::string old_url = url();
  server_->stop();
  EXPECT_FALSE(exists());
  EXPECT_THROW(LoopbackClient{old_url}, std::runtime_error);
  serve();
  expect_healthy();
  server_.reset();
  EXPECT_FALSE(exists());
}

TEST_F(UnixSocket, AppearsWhenItListens) {
  http::ListeningSocket socket(address());
  EXPECT_FALSE(exists());
  socket.listen();
  EXPECT_EQ(socket.address(), address());
  LoopbackClient client("unix:" + path());
  // Connected before it was accepted.
  const http::ListeningSocket::Client accepted = socket.accept();
  ASSERT_TRUE(accepted.socket.is_open());
  EXPECT_EQ(accepted.peer, "unix");
  EXPECT_NE(fcntl(accepted.socket.get(), F_GETFL) & O_NONBLOCK, 0);
  EXPECT_FALSE(socket.accept().socket.is_open()) << "nobody else came";
  EXPECT_EQ(errno, EAGAIN);
}

TEST_F(UnixSocket, TakesThePlaceOfOneThatWasLeftBehind) {
  abandon();
  ASSERT_TRUE(exists());
  serve();
  expect_healthy();
}

TEST_F(UnixSocket, LeavesALiveOneAlone) {
  serve();
  const std::string refused = refusal(address());
  EXPECT_THAT(refused, HasSubstr("cannot listen on unix:" + path()));
  EXPECT_THAT(refused, HasSubstr("Address already in use"));
  EXPECT_TRUE(exists());
  expect_healthy();
}

// Two that start at the same time.
TEST_F(UnixSocket, LeavesOneThatWasFasterAlone) {
  http::ListeningSocket slow(address());
  serve();
  EXPECT_THROW(slow.listen(), InputError);
  EXPECT_TRUE(exists());
  expect_healthy();
}

TEST_F(UnixSocket, LeavesOtherFilesAlone) {
  std::ofstream(path()) << "precious";
  EXPECT_THAT(refusal(address()), HasSubstr("Address already in use"));
  EXPECT_EQ(builder_testing::read_whole(path()), "precious");
  std::filesystem::remove(path());
  std::filesystem::create_directory(path());
  EXPECT_THAT(refusal(address()), HasSubstr("Address already in use"));
  std::filesystem::remove(path());
  // Not followed, wherever it leads.
  std::filesystem::create_symlink(folder_ / "elsewhere", path());
  EXPECT_THAT(refusal(address()), HasSubstr("Address already in use"));
  EXPECT_TRUE(std::filesystem::is_symlink(path()));
}

TEST_F(UnixSocket, SaysWhatIsWrongWithAPath) {
  const std::string folder = folder_.path();
  const std::string longest = folder + "/" + std::string(107 - folder.size() - 1, 'a');
  EXPECT_EQ(refusal(http::parse_listen_address("unix:" + longest)), "");
  EXPECT_THAT(refusal(http::parse_listen_address("unix:" + longest + "a")), HasSubstr("107 bytes"));
  EXPECT_THAT(refusal(http::parse_listen_address("unix:" + folder + "/nowhere/socket")),
              HasSubstr("No such file"));
}

TEST_F(UnixSocket, IsRemovedOnlyByItsOwner) {
  http::ListeningSocket socket(address());
  socket.listen();
  {
    http::ListeningSocket moved(std::move(socket));
    EXPECT_TRUE(exists());
    EXPECT_TRUE(LoopbackClient("unix:" + path()).send("x"));
  }
  EXPECT_FALSE(exists());
  // One that never listened has nothing to remove.
  std::ofstream(path()) << "precious";
  EXPECT_THROW(http::ListeningSocket{address()}, InputError);
  EXPECT_TRUE(exists());
}

TEST_F(UnixSocket, IsNotRemovedWhereAnotherHasItsPlace) {
  http::ListeningSocket former(address());
  former.listen();
  std::filesystem::remove(path());
  http::ListeningSocket next(address());
  next.listen();
  former.close();
  EXPECT_TRUE(exists());
  EXPECT_TRUE(LoopbackClient("unix:" + path()).send("x"));
}

}  // namespace
}  // namespace blindfuse::server_testing
