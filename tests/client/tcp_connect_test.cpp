// Hosts with several addresses, some of which do not answer, by a clock that moves when it is read.
#include "client/tcp_connect.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include "tests/client/hand_clock.h"

namespace blindfuse {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

// A socket that listens at an address of this machine, or is bound alone and refuses.
struct Listener {
  explicit Listener(bool listens) {
    auto* const in = reinterpret_cast<sockaddr_in*>(&address.storage);
    in->sin_family = AF_INET;
    in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.size = sizeof *in;
    auto* const any = reinterpret_cast<sockaddr*>(&address.storage);
    EXPECT_EQ(bind(socket.get(), any, address.size), 0);
    EXPECT_EQ(getsockname(socket.get(), any, &address.size), 0);
    if (listens) {
      EXPECT_EQ(listen(socket.get(), 0), 0);
    }
  }
  const FileDescriptor socket{::socket(AF_INET, SOCK_STREAM, 0)};
  SocketAddress address;
};

// Does not answer: its queue of connections is full.
struct Dead : Listener {
  Dead() : Listener(true) {
    for (int i = 0; i < 100; ++i) {
      waiting.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
      auto* const any = reinterpret_cast<const sockaddr*>(&address.storage);
      connect(waiting.back().get(), any, address.size);
      pollfd polled = {waiting.back().get(), POLLOUT, 0};
      if (poll(&polled, 1, 50) == 0) return;
    }
    ADD_FAILURE() << "its queue is endless";
  }
  std::vector<FileDescriptor> waiting;
};

class TcpConnectTest : public testing::Test {
 protected:
  HandClock clock_;
  milliseconds step_{5};
  Deadline deadline_{seconds(60), [this] {
                       clock_.advance(step_);
                       return clock_.clock()();
                     }};
  const Deadline::Call call_{deadline_};
  Patience patience_{nullptr};
  std::string failure_;
  milliseconds took_{};

  FileDescriptor connect(const std::vector<SocketAddress>& addresses) {
    patience_.begin(deadline_);
    const auto start = clock_.clock()();
    FileDescriptor socket = connect_tcp(addresses, patience_, failure_);
    took_ = std::chrono::duration_cast<milliseconds>(clock_.clock()() - start);
    return socket;
  }

  static uint16_t port_of(const SocketAddress& address) {
    return reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_port;
  }
  static void expect_peer(const FileDescriptor& socket, const Listener& wanted) {
    ASSERT_TRUE(socket.is_open());
    SocketAddress peer;
    peer.size = sizeof peer.storage;
    ASSERT_EQ(getpeername(socket.get(), reinterpret_cast<sockaddr*>(&peer.storage), &peer.size), 0);
    EXPECT_EQ(port_of(peer), port_of(wanted.address));
    EXPECT_NE(fcntl(socket.get(), F_GETFL) & O_NONBLOCK, 0);
  }
};

TEST_F(TcpConnectTest, ADeadAddressCostsAQuarterOfASecond) {
  const Dead dead;
  const Listener live(true);
  expect_peer(connect({dead.address, live.address}), live);
  EXPECT_GE(took_, milliseconds(250));
  EXPECT_LT(took_, milliseconds(500));
}

TEST_F(TcpConnectTest, SeveralDeadAddressesCostAsMuchEach) {
  const Dead dead[3];
  const Listener live(true);
  expect_peer(connect({dead[0].address, dead[1].address, dead[2].address, live.address}), live);
  EXPECT_GE(took_, milliseconds(750));
  EXPECT_LT(took_, milliseconds(1250));
}

TEST_F(TcpConnectTest, ARefusalCostsNoTime) {
  const Listener refuses(false);
  const Listener live(true);
  expect_peer(connect({refuses.address, refuses.address, live.address}), live);
  EXPECT_LT(took_, milliseconds(100));
}

TEST_F(TcpConnectTest, SaysWhyItFailed) {
  const Listener refuses(false);
  EXPECT_FALSE(connect({refuses.address, refuses.address}).is_open());
  EXPECT_EQ(patience_.gave_up(), GaveUp::kNot);
  EXPECT_THAT(failure_, HasSubstr("connection refused; check the port"));
  const Dead dead;
  step_ = milliseconds(500);
  EXPECT_FALSE(connect({dead.address, refuses.address, dead.address}).is_open());
  EXPECT_EQ(patience_.gave_up(), GaveUp::kNot);
  EXPECT_THAT(failure_, HasSubstr("no answer in 20 s; check the address"));
  EXPECT_GE(took_, seconds(20));
  EXPECT_LT(took_, seconds(40));
}

TEST_F(TcpConnectTest, EndsWithTheCall) {
  const Dead dead;
  clock_.advance(seconds(59));
  EXPECT_FALSE(connect({dead.address, dead.address}).is_open());
  EXPECT_EQ(patience_.gave_up(), GaveUp::kCallOver);
}

TEST_F(TcpConnectTest, CanBeStopped) {
  const Dead dead;
  Patience patience([] { return false; });
  patience.begin(deadline_);
  EXPECT_FALSE(connect_tcp(std::vector{dead.address}, patience, failure_).is_open());
  EXPECT_EQ(patience.gave_up(), GaveUp::kStopped);
}

TEST(AddressesOf, AHostHasAddressesOrAReason) {
  std::string failure;
  const std::vector<SocketAddress> found = addresses_of("127.0.0.1", 8080, failure);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(reinterpret_cast<const sockaddr_in*>(&found[0].storage)->sin_port, htons(8080));
  EXPECT_EQ(failure, "");
  EXPECT_TRUE(addresses_of("no-such-host.invalid", 80, failure).empty());
  EXPECT_THAT(failure, HasSubstr("check the address"));
}

}  // namespace
}  // namespace blindfuse
