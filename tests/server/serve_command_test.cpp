// The program `blindfuse serve`, run as an operator runs it.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "host/server/http/listening_socket.h"
#include "src/system/file.h"
#include "tests/paths.h"
#include "tests/server/loopback_client.h"

namespace blindfuse::server_testing {
namespace {

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// blindfuse with these arguments; what it writes goes to the file `output`.
class Program {
 public:
  Program(std::vector<std::string> arguments, const std::filesystem::path& output,
          std::vector<std::string> environment = {}) {
    arguments.insert(arguments.begin(), paths::program_folder() + "/blindfuse");
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    std::vector<char*> envp;
    for (std::string& variable : environment) envp.push_back(variable.data());
    for (char** at = environ; *at != nullptr; ++at) envp.push_back(*at);
    envp.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&files, 1, 2);
    if (posix_spawn(&pid_, argv[0], &files, nullptr, argv.data(), envp.data()) != 0) {
      throw std::runtime_error("cannot run " + arguments[0]);
    }
    posix_spawn_file_actions_destroy(&files);
  }
  ~Program() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      wait();
    }
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void send_signal(int signal) const { kill(pid_, signal); }
  // Leaves the exit status to wait().
  bool is_running() const {
    siginfo_t ended{};
    return waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           ended.si_pid == 0;
  }

  // Whether it has been sent this signal, and has not taken it.
  bool has_pending(int signal) const {
    std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
    for (std::string line; std::getline(status, line);) {
      if (!line.starts_with("ShdPnd:")) continue;
      return (std::stoull(line.substr(7), nullptr, 16) >> (signal - 1) & 1) != 0;
    }
    return false;
  }

  // Its exit status, or minus the signal that ended it.
  int wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  pid_t pid_ = -1;
};

class ServeCommand : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "serve-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    std::ofstream words(folder_ / "words.tsv");
    for (int i = 0; i < 100; ++i) words << "word" << i << "\tmeaning " << i << "\n";
    words.close();
    Program build({"build", path("words.tsv"), "--output", path("words")}, folder_ / "build.log");
    ASSERT_EQ(build.wait(), 0) << contents(folder_ / "build.log");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string log() const { return contents(folder_ / "log"); }

  std::unique_ptr<Program> serve(std::vector<std::string> arguments,
                                 std::vector<std::string> environment = {}) const {
    arguments.insert(arguments.begin(), "serve");
    return std::make_unique<Program>(arguments, folder_ / "log", environment);
  }

  // What a server on any port writes once it accepts requests.
  std::string wait_for_url(const Program& program) const {
    while (!std::filesystem::exists(folder_ / "ready")) {
      if (!program.is_running()) throw std::runtime_error(log());
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    std::string url = contents(folder_ / "ready");
    EXPECT_EQ(url.back(), '\n');
    url.pop_back();
    return url;
  }

  std::filesystem::path folder_;
};

TEST_F(ServeCommand, ServesUntilItIsToldToStop) {
  for (const int signal : {SIGTERM, SIGINT}) {
    const auto program = serve({path("words"), "--listen", "127.0.0.1:0", "--ready-file",
                                path("ready"), "--engine", "cpu"});
    const std::string url = wait_for_url(*program);
    const HttpResponse response = LoopbackClient(url).ask(get_request("/v1/database"));
    EXPECT_EQ(response.body, contents(folder_ / "words" / "manifest.json"));
    program->send_signal(signal);
    EXPECT_EQ(program->wait(), 0) << log();
    EXPECT_FALSE(std::filesystem::exists(folder_ / "ready"));
    EXPECT_THAT(log(), testing::HasSubstr("100 keys"));
    EXPECT_THAT(log(), testing::HasSubstr("engine cpu"));
    EXPECT_THAT(log(), testing::HasSubstr("listening on " + url));
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
  const auto program = serve({path("words"), "--listen", "127.0.0.1:0", "--ready-file",
                              path("ready"), "--log-format", "json", "--no-page"},
                             {"BLINDFUSE_QUEUE_MAX=99"});
  const std::string url = wait_for_url(*program);
  program->send_signal(SIGTERM);
  EXPECT_EQ(program->wait(), 0) << log();
  const auto lines = json_lines(log());
  EXPECT_EQ(lines.at(0).at("message"), "starting");
  EXPECT_THAT(lines.at(0).at("version").get<std::string>(), testing::MatchesRegex("[0-9.]+.*"));
  EXPECT_EQ(lines.at(0).at("directory"), path("words"));
  EXPECT_EQ(lines.at(0).at("listen"), "127.0.0.1:0");
  EXPECT_EQ(lines.at(0).at("queue-max"), "99");
  EXPECT_EQ(lines.at(0).at("no-page"), "true");
  EXPECT_FALSE(lines.at(0).contains("threads")) << "it was not given";
  const auto event = [&](const std::string& begin) {
    for (const auto& line : lines) {
      if (line.at("message").get<std::string>().starts_with(begin)) return line;
    }
    ADD_FAILURE() << "no line begins with " << begin << "\n" << log();
    return nlohmann::json();
  };
  const auto manifest = nlohmann::json::parse(contents(folder_ / "words" / "manifest.json"));
  const std::string epoch = manifest.at("epoch").get<std::string>().substr(0, 16);
  EXPECT_EQ(event("loaded").at("epoch"), epoch);
  EXPECT_EQ(event("loaded").at("keys"), 100);
  EXPECT_EQ(event("listening on").at("url"), url);
  EXPECT_TRUE(event("engine ").contains("engine"));
  EXPECT_THAT(log(), testing::Not(testing::HasSubstr(manifest.at("epoch").get<std::string>())));
}

TEST_F(ServeCommand, LogsRequestsWithTheirEpochAndQueries) {
  const auto program = serve({path("words"), "--listen", "127.0.0.1:0", "--ready-file",
                              path("ready"), "--log-format", "json", "--access-log"});
  const std::string url = wait_for_url(*program);
  LoopbackClient client(url);
  const HttpResponse manifest = client.ask(get_request("/v1/database"));
  const std::string epoch = nlohmann::json::parse(manifest.body).at("epoch");
  const HttpResponse table = client.ask(get_request("/v1/epochs/" + epoch + "/shards"));
  client.send(get_request("/v1/epochs/" + epoch + "/shards", "", "HEAD"));
  EXPECT_EQ(client.receive(true).status, 200);
  EXPECT_EQ(client.ask(get_request("/v1/epochs/" + std::string(64, 'e') + "/shards")).status, 404);
  const auto document = nlohmann::json::parse(client.ask(get_request("/openapi.json")).body);
  const size_t query_bytes =
      document.at("components").at("schemas").at("BinaryQueries").at("minLength");
  const std::string zeros(2 * query_bytes, '\0');
  const HttpResponse responses = client.ask(
      post_request("/v1/epochs/" + epoch + "/queries", "application/octet-stream", zeros));
  EXPECT_EQ(responses.status, 200);
  program->send_signal(SIGTERM);
  EXPECT_EQ(program->wait(), 0);
  std::vector<nlohmann::json> requests;
  for (auto& line : json_lines(log())) {
    if (line.at("message") == "request") requests.push_back(line);
  }
  ASSERT_EQ(requests.size(), 6u) << log();
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
    Program program({"serve", path("nowhere"), "--listen", "127.0.0.1:0"}, ptsname(terminal.get()),
                    {variable, "TERM=xterm"});
    EXPECT_EQ(program.wait(), 1);
    std::string text(65'536, '\0');
    text.resize(
        static_cast<size_t>(std::max<ssize_t>(0, read(terminal.get(), text.data(), text.size()))));
    EXPECT_THAT(text, testing::HasSubstr("starting"));
    return text;
  };
  EXPECT_THAT(shown("NO_COLOR="), testing::HasSubstr("\x1b["));
  EXPECT_THAT(shown("NO_COLOR=1"), testing::Not(testing::HasSubstr("\x1b[")));
}

TEST_F(ServeCommand, TakesOptionsFromTheEnvironment) {
  const auto program =
      serve({path("words"), "--cors-origin", "*", "--cors-origin", "https://example.org",
             "--cors-origin", "http://[::1]:8081"},
            {"BLINDFUSE_LISTEN=127.0.0.1:0", "BLINDFUSE_READY_FILE=" + path("ready"),
             "BLINDFUSE_QUERIES_PER_REQUEST_MAX=1"});
  LoopbackClient client(wait_for_url(*program));
  EXPECT_EQ(client.ask(get_request("/health/ready")).status, 200);
}

TEST_F(ServeCommand, HasAnAdminListenerThatAnswersWhileItStops) {
  const std::string socket = "unix:" + path("admin");
  const auto program = serve({path("words"), "--listen", "127.0.0.1:0", "--ready-file",
                              path("ready"), "--admin-listen", socket});
  LoopbackClient client(wait_for_url(*program));
  EXPECT_EQ(client.ask(get_request("/metrics")).status, 404);
  LoopbackClient admin(socket);
  EXPECT_THAT(admin.ask(get_request("/metrics")).body, testing::HasSubstr("blindfuse_keys 100\n"));
  // A request that is under way keeps the server from stopping, and the operator sees that.
  client.send("GET /v1/database HTTP/1.1\r\n");
  program->send_signal(SIGTERM);
  // A connection for each, as one is closed after many requests.
  while (LoopbackClient(socket).ask(get_request("/health/ready")).status != 503) {
    std::this_thread::yield();
  }
  client.send("Host: x\r\n\r\n");
  EXPECT_EQ(client.receive().status, 200);
  EXPECT_EQ(program->wait(), 0) << log();
  EXPECT_THAT(log(), testing::HasSubstr("admin listener on " + socket));
  EXPECT_FALSE(std::filesystem::exists(path("admin")));
}

TEST_F(ServeCommand, RefusesAPortInUse) {
  http::ListeningSocket taken({"127.0.0.1", 0});
  taken.listen();
  const std::string address = http::format_listen_address(taken.address());
  const auto program = serve({path("words"), "--listen", address, "--ready-file", path("ready")});
  EXPECT_EQ(program->wait(), 1);
  // Nothing before it: the database was not loaded for nothing.
  EXPECT_EQ(log(), "blindfuse: cannot listen on " + address + ": Address already in use\n");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "ready"));
}

TEST_F(ServeCommand, RefusesWhatItCannotServe) {
  const auto status = [&](std::vector<std::string> arguments) { return serve(arguments)->wait(); };
  EXPECT_EQ(status({path("nowhere"), "--listen", "127.0.0.1:0"}), 1);
  EXPECT_THAT(log(), testing::HasSubstr(path("nowhere")));
  EXPECT_EQ(status({folder_.string(), "--listen", "127.0.0.1:0"}), 1);
  EXPECT_EQ(status({path("words"), "--listen", "127.0.0.1"}), 2);
  EXPECT_THAT(log(), testing::StartsWith("blindfuse: cannot listen on 127.0.0.1: HOST:PORT"));
  EXPECT_EQ(status({path("words"), "--listen", "127.0.0.1:0", "--engine", "abacus"}), 2);
  EXPECT_THAT(log(), testing::HasSubstr("abacus"));
  EXPECT_EQ(status({path("words"), "--listen", "127.0.0.1:0", "--queue-max", "3",
                    "--queries-per-request-max", "4"}),
            2);
  EXPECT_EQ(
      status({path("words"), "--listen", "127.0.0.1:0", "--ready-file", path("nowhere/ready")}), 1);
  EXPECT_EQ(status({}), 2);
  EXPECT_EQ(status({path("words"), "--http-threads", "-1"}), 2);
  for (const char* origin :
       {"https://example.org/", "https://example.org/page", "example.org", "https://",
        "https://Example.org", "https://example.org:", "https://*.example.org", "null"}) {
    EXPECT_EQ(status({path("nowhere"), "--cors-origin", origin}), 2) << origin;
    EXPECT_THAT(log(),
                testing::HasSubstr(std::string("--cors-origin ") + origin + " is not an origin"));
  }
  EXPECT_EQ(status({path("words"), "--batch-max", "none"}), 2);
  EXPECT_EQ(status({path("words"), "--client-address-header", ""}), 2);
  for (const char* name : {"X-Real-IP:", "X Real IP"}) {
    EXPECT_EQ(status({path("words"), "--client-address-header", name}), 2) << name;
    EXPECT_THAT(log(), testing::HasSubstr("is not the name of a header"));
  }
  // All clients of the socket would have one quota, or none.
  EXPECT_EQ(status({path("words"), "--listen", "unix:" + path("socket"),
                    "--client-queries-per-minute-max", "60"}),
            2);
  EXPECT_THAT(log(), testing::HasSubstr("--client-address-header"));
}

TEST_F(ServeCommand, EndsAtOnceWhenItIsToldTwice) {
  const auto program =
      serve({path("words"), "--listen", "127.0.0.1:0", "--ready-file", path("ready")});
  const std::string url = wait_for_url(*program);
  // A request that does not come to an end keeps the server from stopping.
  LoopbackClient manifest(url);
  const std::string epoch = nlohmann::json::parse(manifest.ask(get_request("/v1/database")).body)
                                .at("epoch")
                                .get<std::string>();
  LoopbackClient slow(url);
  slow.send(post_head("/v1/epochs/" + epoch + "/queries", "application/json", "100"));
  slow.send("{");
  EXPECT_EQ(manifest.ask(get_request("/health/live")).status, 200);
  program->send_signal(SIGTERM);
  EXPECT_TRUE(manifest.is_closed());
  EXPECT_TRUE(program->is_running());
  program->send_signal(SIGTERM);
  EXPECT_EQ(program->wait(), 1);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "ready"));
}

// Whoever reads its log stands still: it cannot even say that it stops.
TEST_F(ServeCommand, EndsAtOnceWhenItIsToldTwiceAndItsLogIsStuck) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer's _exit() flushes stderr first, which is stuck";
#endif
  ASSERT_EQ(mkfifo(path("log").c_str(), 0600), 0);
  const FileDescriptor log(open(path("log").c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  ASSERT_TRUE(log.is_open());
  const auto program =
      serve({path("words"), "--listen", "127.0.0.1:0", "--ready-file", path("ready")});
  wait_for_url(*program);
  // Until it has no more room, whatever the server still has to say at its start.
  while (true) {
    const std::string filling(4'096, '.');
    if (write(log.get(), filling.data(), filling.size()) < 0) break;
  }
  while (write(log.get(), ".", 1) > 0) {
  }
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(program->is_running());
    program->send_signal(SIGTERM);
    while (program->is_running() && program->has_pending(SIGTERM)) std::this_thread::yield();
  }
  EXPECT_EQ(program->wait(), 1);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "ready"));
}

}  // namespace
}  // namespace blindfuse::server_testing
