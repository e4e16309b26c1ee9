// A process that is forked while a request is under way: the connection stays its parent's.
#include <blindfuse/errors.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <memory>
#include <string>

#include "client/http_transport.h"
#include "tests/client/client_testing.h"
#include "tests/client/http_fake_server.h"
#include "tests/client/self_signed.h"

namespace blindfuse {
namespace {

class ForkedRequestTest : public testing::TestWithParam<bool> {
 protected:
  ForkedRequestTest() {
    auto http = std::make_unique<httplib::Server>();
    if (is_secure()) {
      http = std::make_unique<httplib::SSLServer>(certificate_.certificate, certificate_.key);
    }
    http->set_pre_routing_handler([this](const httplib::Request&, httplib::Response&) {
      child_ended_.wait();
      return httplib::Server::HandlerResponse::Unhandled;
    });
    server_ = std::make_unique<HttpFakeServer>(fake_, "", std::move(http));
    certificate_.write(ca_file());
    HttpOptions options;
    options.ca_file = ca_file();
    const std::string scheme = is_secure() ? "https" : "http";
    transport_ = std::make_unique<HttpTransport>(
        parse_url(scheme + "://127.0.0.1:" + std::to_string(server_->port())), options,
        [this] { return keep_waiting(); });
  }

  bool is_secure() const { return GetParam(); }
  std::string ca_file() const { return scratch_.path() / "ca.pem"; }

  // Forks once. The child does not go on with the request, and the parent does once it has ended.
  bool keep_waiting() {
    if (has_forked_) return true;
    has_forked_ = true;
    child_ = fork();
    if (child_ == 0) return false;
    int status = -1;
    waitpid(child_, &status, 0);
    EXPECT_EQ(status, 0);
    ended_.set_value();
    return true;
  }

  int status_of_get() {
    CollectedBody body;
    try {
      return transport_->get("/v1/database", 0, body).status;
    } catch (const CancelledError&) {
      transport_.reset();
      _exit(child_ == 0 ? 0 : 1);
    }
  }

  ScratchFolder scratch_;
  const SelfSigned certificate_;
  FakeServer fake_{ServedDatabase::with_noise(1, 1, 0)};
  std::promise<void> ended_;
  std::shared_future<void> child_ended_{ended_.get_future()};
  bool has_forked_ = false;
  pid_t child_ = -1;
  std::unique_ptr<HttpFakeServer> server_;
  std::unique_ptr<HttpTransport> transport_;
};

INSTANTIATE_TEST_SUITE_P(, ForkedRequestTest, testing::Bool(),
                         [](const auto& of) { return of.param ? "Https" : "Http"; });

TEST_P(ForkedRequestTest, LeavesTheConnectionToTheParent) {
  EXPECT_EQ(status_of_get(), 200);
  EXPECT_EQ(status_of_get(), 200);
  EXPECT_EQ(server_->connection_count(), 1u);
}

}  // namespace
}  // namespace blindfuse
