// The program `blindfuse serve`, run as an operator runs it.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <sstream>

#include "host/server/http/listening_socket.h"
#include "host/server/serving/api_keys.h"
#include "src/system/file.h"
#include "tests/programs/program_testing.h"
#include "tests/server/loopback_client.h"
#include "tests/server/tls_testing.h"

namespace blindfuse::program_testing {
namespace {

using server_testing::get_request;
using server_testing::HttpResponse;
using server_testing::LoopbackClient;
using server_testing::post_head;
using server_testing::post_request;
using ::testing::HasSubstr;
using ::testing::Not;

class ServeCommand : public testing::Test {
 protected:
  void SetUp() override {
    std::string words;
    for (int i = 0; i < 100; ++i) {
      words += "word" + std::to_string(i) + "\tmeaning " + std::to_string(i) + "\n";
    }
    const std::string input = write_file(path("words.tsv"), words);
    const ProgramResult built =
        run(folder_, {kBlindfuse, "build", input, "--output", path("words")});
    ASSERT_EQ(built.status, 0) << built.err;
  }

  std::string path(const char* name) const { return folder_ / name; }
  RunningServer serve(const Words& more = {}, const RunningServer::Wrapper& wrapper = {}) const {
    return {folder_, path("words"), "127.0.0.1:0", more, wrapper};
  }
  // Runs the command with these variables, or, as a shell does, with its output somewhere else.
  static RunningServer::Wrapper after(Words words) {
    return [words](const Words& command) { return words + command; };
  }

  const TemporaryFolder folder_;
};

TEST_F(ServeCommand, ServesUntilItIsToldToStop) {
  for (const int signal : {SIGTERM, SIGINT}) {
    RunningServer server = serve({"--engine", "cpu"});
    const HttpResponse response = LoopbackClient(server.url()).ask(get_request("/v1/database"));
    EXPECT_EQ(response.body, read_whole(path("words/manifest.json")));
    server.program().send(signal);
    EXPECT_EQ(server.program().wait(), 0) << server.program().err();
    const std::string log = server.program().err();
    EXPECT_FALSE(std::filesystem::exists(server.ready_file()));
    EXPECT_THAT(log, HasSubstr("100 keys"));
    EXPECT_THAT(log, HasSubstr("engine cpu"));
    EXPECT_THAT(log, HasSubstr("listening on " + server.url()));
  }
}

std::vector<nlohmann::json> json_lines(const std::string& text) {
  std::vector<nlohmann::json> lines;
  std::istringstream all(text);
  for (std::string line; std::getline(all, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

// Programs find what they need in members, and not in sentences.
TEST_F(ServeCommand, LogsWhatItDoesInMembers) {
  RunningServer server =
      serve({"--log-format", "json", "--no-page"}, after({"env", "BLINDFUSE_QUEUE_MAX=99"}));
  EXPECT_EQ(server.stop(), 0);
  const std::string log = server.program().err();
  const auto lines = json_lines(log);
  EXPECT_EQ(lines.at(0).at("message"), "starting");
  EXPECT_THAT(lines.at(0).at("version").get<std::string>(), testing::MatchesRegex("[0-9.]+.*"));
  EXPECT_EQ(lines.at(0).at("directory"), path("words"));
  EXPECT_EQ(lines.at(0).at("listen"), "127.0.0.1:0");
  EXPECT_EQ(lines.at(0).at("queue-max"), "99");
  EXPECT_EQ(lines.at(0).at("no-page"), "true");
  EXPECT_FALSE(lines.at(0).contains("threads")) << "it was not given";
  const auto event = [&](const std::string& begin) {
    const auto at = std::ranges::find_if(lines, [&](const nlohmann::json& line) {
      return line.at("message").get<std::string>().starts_with(begin);
    });
    EXPECT_NE(at, lines.end()) << "no line begins with " << begin << "\n" << log;
    return at == lines.end() ? nlohmann::json() : *at;
  };
  const std::string epoch =
      nlohmann::json::parse(read_whole(path("words/manifest.json"))).at("epoch");
  EXPECT_EQ(event("loaded").at("epoch"), epoch.substr(0, 16));
  EXPECT_EQ(event("loaded").at("keys"), 100);
  EXPECT_EQ(event("listening on").at("url"), server.url());
  EXPECT_TRUE(event("engine ").contains("engine"));
  EXPECT_THAT(log, Not(HasSubstr(epoch)));
}

TEST_F(ServeCommand, LogsRequestsWithTheirEpochAndQueries) {
  RunningServer server = serve({"--log-format", "json", "--access-log"});
  LoopbackClient client(server.url());
  const HttpResponse manifest = client.ask(get_request("/v1/database"));
  const std::string epoch = nlohmann::json::parse(manifest.body).at("epoch");
  const HttpResponse table = client.ask(get_request("/v1/epochs/" + epoch + "/shards"));
  client.send(get_request("/v1/epochs/" + epoch + "/shards", "", "HEAD"));
  EXPECT_EQ(client.receive(true).status, 200);
  EXPECT_EQ(client.ask(get_request("/v1/epochs/" + std::string(64, 'e') + "/shards")).status, 404);
  const auto document = nlohmann::json::parse(client.ask(get_request("/openapi.json")).body);
  const size_t query_bytes =
      document.at("components").at("schemas").at("BinaryQueries").at("minLength");
  const HttpResponse responses =
      client.ask(post_request("/v1/epochs/" + epoch + "/queries", "application/octet-stream",
                              std::string(2 * query_bytes, '\0')));
  EXPECT_EQ(responses.status, 200);
  EXPECT_EQ(server.stop(), 0);
  std::vector<nlohmann::json> requests;
  for (auto& line : json_lines(server.program().err())) {
    if (line.at("message") == "request") requests.push_back(line);
  }
  ASSERT_EQ(requests.size(), 6u) << server.program().err();
  EXPECT_EQ(requests[0].at("sent_bytes"), manifest.body.size());
  EXPECT_FALSE(requests[0].contains("epoch"));
  EXPECT_FALSE(requests[0].contains("queries"));
  EXPECT_EQ(requests[1].at("epoch"), epoch.substr(0, 16));
  EXPECT_EQ(requests[1].at("sent_bytes"), table.body.size());
  EXPECT_EQ(requests[2].at("sent_bytes"), 0) << "HEAD";
  EXPECT_FALSE(requests[3].contains("epoch")) << "it is what a client wrote";
  EXPECT_EQ(requests[5].at("epoch"), epoch.substr(0, 16));
  EXPECT_EQ(requests[5].at("queries"), 2);
  EXPECT_EQ(requests[5].at("sent_bytes"), responses.body.size());
}

// https://no-color.org: with NO_COLOR, unless it is empty, a terminal gets no colours.
TEST_F(ServeCommand, HasNoColoursWhereTheyAreNotWanted) {
  const auto shown = [&](const std::string& variable) {
    const FileDescriptor terminal(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
    EXPECT_EQ(grantpt(terminal.get()), 0);
    EXPECT_EQ(unlockpt(terminal.get()), 0);
    EXPECT_EQ(run(folder_, {"env", variable, "TERM=xterm", "sh", "-c", "exec \"$@\" 2>\"$0\"",
                            ptsname(terminal.get()), kBlindfuse, "serve", path("nowhere"),
                            "--listen", "127.0.0.1:0"})
                  .status,
              1);
    std::string text(65'536, '\0');
    text.resize(
        static_cast<size_t>(std::max<ssize_t>(0, read(terminal.get(), text.data(), text.size()))));
    EXPECT_THAT(text, HasSubstr("starting"));
    return text;
  };
  EXPECT_THAT(shown("NO_COLOR="), HasSubstr("\x1b["));
  EXPECT_THAT(shown("NO_COLOR=1"), Not(HasSubstr("\x1b[")));
}

TEST_F(ServeCommand, TakesOptionsFromTheEnvironment) {
  RunningProgram program(
      folder_,
      {"env", "BLINDFUSE_LISTEN=127.0.0.1:0", "BLINDFUSE_READY_FILE=" + path("ready"),
       "BLINDFUSE_QUERIES_PER_REQUEST_MAX=1", kBlindfuse, "serve", path("words"), "--cors-origin",
       "*", "--cors-origin", "https://example.org", "--cors-origin", "http://[::1]:8081"});
  while (!std::filesystem::exists(path("ready"))) {
    ASSERT_FALSE(program.has_ended()) << program.err();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  const std::string url = read_whole(path("ready"));
  EXPECT_EQ(url.back(), '\n');
  EXPECT_EQ(LoopbackClient(url).ask(get_request("/health/ready")).status, 200);
}

TEST_F(ServeCommand, HasAnAdminListenerThatAnswersWhileItStops) {
  RunningServer server = serve();
  LoopbackClient client(server.url());
  EXPECT_EQ(client.ask(get_request("/metrics")).status, 404);
  const auto ask_admin = [&](const char* path) {
    return LoopbackClient(server.admin_url()).ask(get_request(path));
  };
  EXPECT_THAT(ask_admin("/metrics").body, HasSubstr("blindfuse_keys 100\n"));
  // A request that is under way keeps the server from stopping, and the operator sees that.
  client.send("GET /v1/database HTTP/1.1\r\n");
  server.program().send(SIGTERM);
  while (ask_admin("/health/ready").status != 503) std::this_thread::yield();
  EXPECT_EQ(client.ask("Host: x\r\n\r\n").status, 200);
  EXPECT_EQ(server.program().wait(), 0) << server.program().err();
  EXPECT_THAT(server.program().err(), HasSubstr("admin listener on " + server.admin_url()));
  EXPECT_FALSE(std::filesystem::exists(server.admin_url().substr(5)));
}

TEST_F(ServeCommand, RefusesAPortInUse) {
  http::ListeningSocket taken({"127.0.0.1", 0});
  taken.listen();
  const std::string address = http::format_listen_address(taken.address());
  const ProgramResult result = run(folder_, {kBlindfuse, "serve", path("words"), "--listen",
                                             address, "--ready-file", path("ready")});
  EXPECT_EQ(result.status, 1);
  // Nothing before it: the database was not loaded for nothing.
  EXPECT_EQ(result.err, "blindfuse: cannot listen on " + address + ": Address already in use\n");
  EXPECT_FALSE(std::filesystem::exists(path("ready")));
}

TEST_F(ServeCommand, RefusesWhatItCannotServe) {
  const std::string words = path("words"), nowhere = path("nowhere");
  struct Wrong {
    Words arguments;  // unless they have one, after --listen with any port
    int status;
    std::string said = "";
  };
  std::vector<Wrong> all = {
      {{nowhere}, 1, nowhere},
      {{folder_.path()}, 1},
      {{words, "--listen", "127.0.0.1"}, 2, "blindfuse: cannot listen on 127.0.0.1: HOST:PORT"},
      {{words, "--engine", "abacus"}, 2, "abacus"},
      {{words, "--queue-max", "3", "--queries-per-request-max", "4"}, 2},
      {{words, "--ready-file", nowhere + "/ready"}, 1},
      {{}, 2},
      {{words, "--http-threads", "-1"}, 2},
      {{words, "--batch-max", "none"}, 2},
      {{words, "--client-address-header", ""}, 2},
      {{words, "--client-address-header", "X-Real-IP:"}, 2, "is not the name of a header"},
      {{words, "--client-address-header", "X Real IP"}, 2, "is not the name of a header"},
      // All clients of the socket would have one quota, or none.
      {{words, "--listen", "unix:" + path("socket"), "--client-queries-per-minute-max", "60"},
       2,
       "--client-address-header"},
  };
  for (const std::string origin :
       {"https://example.org/", "https://example.org/page", "example.org", "https://",
        "https://Example.org", "https://example.org:", "https://*.example.org", "null"}) {
    all.push_back(
        {{nowhere, "--cors-origin", origin}, 2, "--cors-origin " + origin + " is not an origin"});
  }
  for (Wrong& wrong : all) {
    Words command = {kBlindfuse, "serve"};
    if (std::ranges::find(wrong.arguments, "--listen") == wrong.arguments.end()) {
      command.insert(command.end(), {"--listen", "127.0.0.1:0"});
    }
    const ProgramResult result = run(folder_, command + wrong.arguments);
    EXPECT_EQ(result.status, wrong.status) << result.err;
    EXPECT_THAT(result.err, HasSubstr(wrong.said));
  }
}

// Whether it has been sent this signal, and has not taken it.
bool has_pending(const RunningProgram& program, int signal) {
  std::ifstream status("/proc/" + std::to_string(program.id()) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("ShdPnd:")) continue;
    return (std::stoull(line.substr(7), nullptr, 16) >> (signal - 1) & 1) != 0;
  }
  return false;
}

// Whoever reads its log stands still: it cannot even say that it stops.
TEST_F(ServeCommand, EndsAtOnceWhenItIsToldTwiceAndItsLogIsStuck) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer's _exit() flushes stderr first, which is stuck";
#endif
  ASSERT_EQ(mkfifo(path("log").c_str(), 0600), 0);
  const FileDescriptor log(open(path("log").c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  ASSERT_TRUE(log.is_open());
  RunningServer server = serve({}, after({"sh", "-c", "exec \"$@\" 2>\"$0\"", path("log")}));
  ASSERT_NE(server.url(), "");
  // Until it has no more room, whatever the server still has to say at its start.
  const std::string filling(4'096, '.');
  while (write(log.get(), filling.data(), filling.size()) > 0) {
  }
  while (write(log.get(), ".", 1) > 0) {
  }
  RunningProgram& program = server.program();
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(program.has_ended());
    program.send(SIGTERM);
    while (!program.has_ended() && has_pending(program, SIGTERM)) std::this_thread::yield();
  }
  EXPECT_EQ(program.wait(), 1);
  EXPECT_FALSE(std::filesystem::exists(server.ready_file()));
}

// What SIGHUP makes a running server read again.
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
