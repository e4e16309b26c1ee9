// What SIGHUP makes a running server read again.
#include <gtest/gtest.h>

#include <csignal>

#include "host/server/serving/api_keys.h"
#include "tests/programs/program_testing.h"
#include "tests/server/tls_testing.h"

namespace blindfuse::program_testing {
namespace {

using server_testing::get_request;
using server_testing::TlsClient;

TEST(Reload, TakesNewApiKeysAndANewCertificate) {
  std::signal(SIGPIPE, SIG_IGN);
  const TemporaryFolder folder;
  const std::string database = folder / "words.blindfuse";
  write_file(folder / "input.tsv", "tea\thot\n");
  ASSERT_EQ(run(folder, {kBlindfuse, "build", folder / "input.tsv", "--output", database}).status,
            0);
  const std::string keys = folder / "keys", certificate = folder / "cert.pem",
                    private_key = folder / "key.pem";
  write_file(keys, api_key_line("old", "old-key") + "\n");
  server_testing::write_certificate_and_key(certificate, private_key, 1);
  RunningServer server(folder, database, "127.0.0.1:0",
                       {"--api-keys", keys, "--tls-cert", certificate, "--tls-key", private_key});
  ASSERT_NE(server.url(), "") << server.program().err();

  const auto status = [&](const std::string& key) {
    return TlsClient(server.url())
        .ask(get_request("/v1/database", "Authorization: Bearer " + key + "\r\n"))
        .status;
  };
  EXPECT_EQ(status("old-key"), 200);
  EXPECT_EQ(status("new-key"), 401);
  EXPECT_EQ(TlsClient(server.url()).serial(), 1);

  write_file(keys, api_key_line("new", "new-key") + "\n");
  server_testing::write_certificate_and_key(certificate, private_key, 2);
  server.program().send(SIGHUP);
  // Both are read by the same signal, the keys last.
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (status("new-key") != 200 && std::chrono::steady_clock::now() < give_up) {
    std::this_thread::yield();
  }
  EXPECT_EQ(status("new-key"), 200);
  EXPECT_EQ(status("old-key"), 401) << "a revoked key";
  EXPECT_EQ(TlsClient(server.url()).serial(), 2);

  write_file(keys, "# nobody\n");
  server.program().send(SIGHUP);
  while (status("new-key") != 401 && std::chrono::steady_clock::now() < give_up) {
    std::this_thread::yield();
  }
  EXPECT_EQ(status("new-key"), 401);
  EXPECT_EQ(server.stop(), 0);
  EXPECT_NE(
      server.program().err().find("the file of API keys has no keys: every request is refused"),
      std::string::npos)
      << server.program().err();
}

}  // namespace
}  // namespace blindfuse::program_testing
