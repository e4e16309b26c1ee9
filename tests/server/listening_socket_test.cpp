// Sockets in the file system. What TCP does is in http_server_test.cpp.
#include "host/server/http/listening_socket.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "src/base/errors.h"
#include "tests/publish/builder_testing.h"
#include "tests/server/running_server.h"

namespace blindfuse::server_testing {
namespace {

using ::testing::HasSubstr;

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

  std::string refusal(const http::ListenAddress& address) const {
    try {
      http::ListeningSocket socket(address);
      socket.listen();
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }

  const builder_testing::TemporaryFolder folder_;
};

TEST_F(UnixSocket, IsServedLikeAPort) {
  serve();
  EXPECT_EQ(url(), "unix:" + path());
  expect_healthy();
  LoopbackClient client(url());
  EXPECT_EQ(client.ask(get_request("/v1/database")).body, database_.downloads->manifest_text);
  EXPECT_EQ(client.ask(get_request(epoch_path("/hint"))).body, hints_of(database_, 0, kShards - 1));
  expect_refused(post_request("/nowhere", "text/plain", std::string(10'000, 'x')), 404,
                 "unknown-route");
  { LoopbackClient leaves(url()); }
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
  EXPECT_TRUE(exists());
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

TEST_F(UnixSocket, DoesNotTakeThePlaceOfOneThatCameMeanwhile) {
  http::ListeningSocket slower(address());
  http::ListeningSocket faster(address());
  faster.listen();
  EXPECT_THROW(slower.listen(), InputError);
  EXPECT_TRUE(LoopbackClient("unix:" + path()).send("x"));
}

}  // namespace
}  // namespace blindfuse::server_testing
