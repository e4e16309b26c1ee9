#include "client/connection.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "src/system/file.h"
#include "tests/client/client_testing.h"
#include "tests/client/raw_server.h"
#include "tests/client/self_signed.h"

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

// Hosts with several addresses, some of which do not answer, by a clock that moves when it is read.
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

using std::chrono::hours;

// A request to shake hands again, which has to be passed over during a handshake.
constexpr std::string_view kHelloRequest("\x16\x03\x03\x00\x04\x00\x00\x00\x00", 9);

// Servers that keep OpenSSL busy with records that are not for its caller.
class TlsContextTest : public testing::Test {
 protected:
  void SetUp() override {
    std::array<int, 2> ends;
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
    client_ = FileDescriptor(ends[0]);
    server_ = FileDescriptor(ends[1]);
    std::string flood;
    for (int i = 0; i < 2000; ++i) flood += kHelloRequest;
    ASSERT_TRUE(send_all(server_.get(), flood));
  }

  // Shakes hands within a call of so long, by a clock that moves by a second whenever it is read.
  GaveUp shake_hands(seconds timeout) {
    const auto running = [this] {
      clock_.advance(seconds(1));
      return clock_.clock()();
    };
    Deadline deadline(timeout, running);
    const Deadline::Call call(deadline);
    Patience patience(nullptr);
    patience.begin(deadline);
    long fault = X509_V_OK;
    const SslPointer made = TlsContext("").connect(client_.get(), "127.0.0.1", patience,
                                                   patience.now() + seconds(20), fault);
    EXPECT_EQ(made, nullptr);
    return patience.gave_up();
  }

  int bytes_not_read() const {
    int count = 0;
    EXPECT_EQ(ioctl(client_.get(), FIONREAD, &count), 0);
    return count;
  }

  HandClock clock_;
  FileDescriptor client_;
  FileDescriptor server_;
};

TEST_F(TlsContextTest, AFloodOfHandshakeMessagesEndsWithTheCall) {
  EXPECT_EQ(shake_hands(seconds(10)), GaveUp::kCallOver);
  EXPECT_GT(bytes_not_read(), 0);
}

TEST_F(TlsContextTest, AFloodOfHandshakeMessagesEndsWithTheHandshakesTime) {
  EXPECT_EQ(shake_hands(hours(1)), GaveUp::kNothingCame);
  EXPECT_GT(bytes_not_read(), 0);
}

TEST(TlsReadTest, AFloodOfSessionTicketsEndsWithTheCall) {
  std::array<int, 2> ends;
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  const FileDescriptor client(ends[0]);
  const FileDescriptor server(ends[1]);
  ASSERT_EQ(fcntl(client.get(), F_SETFL, O_NONBLOCK), 0);
  const ScratchFolder scratch;
  const SelfSigned identity;
  const std::filesystem::path ca_file = scratch.path() / "ca.pem";
  identity.write(ca_file);
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_server_method()),
                                                                  SSL_CTX_free);
  SSL_CTX_use_certificate(context.get(), identity.certificate);
  SSL_CTX_use_PrivateKey(context.get(), identity.key);
  std::thread flood([&] {
    const SslPointer ssl(SSL_new(context.get()));
    SSL_set_fd(ssl.get(), server.get());
    ASSERT_EQ(SSL_accept(ssl.get()), 1);
    for (int i = 0; i < 100; ++i) {
      ASSERT_EQ(SSL_new_session_ticket(ssl.get()), 1);
      ASSERT_EQ(SSL_do_handshake(ssl.get()), 1);
    }
  });

  HandClock clock;
  seconds step(0);
  Deadline deadline(seconds(10), [&] {
    clock.advance(step);
    return clock.clock()();
  });
  const Deadline::Call call(deadline);
  Patience patience(nullptr);
  patience.begin(deadline);
  long fault = X509_V_OK;
  const SslPointer ssl =
      TlsContext(ca_file.string())
          .connect(client.get(), "127.0.0.1", patience, patience.now() + seconds(20), fault);
  flood.join();
  ASSERT_NE(ssl, nullptr);
  step = seconds(1);
  char byte = 0;
  EXPECT_LT(SSL_read(ssl.get(), &byte, 1), 0);
  EXPECT_EQ(patience.gave_up(), GaveUp::kCallOver);
  int not_read = 0;
  EXPECT_EQ(ioctl(client.get(), FIONREAD, &not_read), 0);
  EXPECT_GT(not_read, 0);
}

}  // namespace
}  // namespace blindfuse
