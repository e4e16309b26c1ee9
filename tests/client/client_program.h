// blindfuse-client as a person or a script runs it, for its tests.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/client/http_fake_server.h"
#include "tests/client/look_ups.h"
#include "tests/paths.h"

namespace blindfuse {

class ClientProgram : public FakeServerTest {
 protected:
  struct Outcome {
    int status = -1;
    std::string out;
    std::string err;
  };

  FakeServer& fake_ = server_;
  HttpFakeServer http_{fake_};

  std::string key_hex(size_t i) const { return entries_[i]["key"]; }

  // Arguments as a shell takes them; `input` on standard input.
  Outcome run(const std::string& arguments, const std::string& input = "") const {
    return run_command(program() + " " + arguments, input);
  }

  // With its environment, for a shell.
  std::string program() const {
    return "BLINDFUSE_CACHE=" + cache().string() + " " + paths::program_folder() +
           "/blindfuse-client";
  }
  std::filesystem::path cache() const { return scratch_.path() / "cache"; }

  // As above. What the command itself redirects is not in its outcome.
  Outcome run_command(const std::string& command, const std::string& input = "") const {
    const std::filesystem::path in = scratch_.path() / "in", out = scratch_.path() / "out",
                                err = scratch_.path() / "err";
    std::ofstream(in, std::ios::binary) << input;
    const int status = std::system(
        ("{ " + command + "\n} <" + in.string() + " >" + out.string() + " 2>" + err.string())
            .c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, contents(out), contents(err)};
  }

  // What it prints on a terminal, where lines end in "\r\n".
  std::string run_on_terminal(const std::string& arguments, const std::string& input = "") const {
    const std::filesystem::path keys = scratch_.path() / "keys";
    std::ofstream(keys, std::ios::binary) << input;
    return run_command("script -qc '" + program() + " " + arguments + " <" + keys.string() +
                       "' /dev/null </dev/null")
        .out;
  }

  static std::string contents(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }

  static std::vector<nlohmann::json> json_lines(const std::string& text) {
    std::vector<nlohmann::json> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) {
      lines.push_back(nlohmann::json::parse(line));
    }
    return lines;
  }
};

}  // namespace blindfuse
