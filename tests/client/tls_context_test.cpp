// Servers that keep OpenSSL busy with records that are not for its caller.
#include "client/tls_context.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "src/system/file.h"
#include "tests/client/hand_clock.h"
#include "tests/client/raw_server.h"
#include "tests/client/scratch_folder.h"
#include "tests/client/self_signed.h"

namespace blindfuse {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

// A request to shake hands again, which has to be passed over during a handshake.
constexpr std::string_view kHelloRequest("\x16\x03\x03\x00\x04\x00\x00\x00\x00", 9);

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
  const SocketAttempt made = tls_attempt(ssl.get(), [&] { return SSL_read(ssl.get(), &byte, 1); });
  EXPECT_EQ(made.done, -1);
  EXPECT_EQ(patience.gave_up(), GaveUp::kCallOver);
  int not_read = 0;
  EXPECT_EQ(ioctl(client.get(), FIONREAD, &not_read), 0);
  EXPECT_GT(not_read, 0);
}

}  // namespace
}  // namespace blindfuse
