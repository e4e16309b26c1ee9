// What a get takes in C++, for bench/python/get_overhead.py: asks for each key that comes in a line
// of its own, and answers with a line of seconds.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <string>

#include <blindfuse/client.h>

#include "src/program/program.h"

int main(int argc, char** argv) {
  CLI::App app(
      "Reads keys from standard input, a line each, and prints for each the seconds that its "
      "look-up took, and 1 if it was found or else 0.",
      "blindfuse-bench-get");
  std::string url;
  blindfuse::ClientOptions options;
  app.add_option("url", url, "Server")->required();
  app.add_option("cache", options.cache_folder, "Folder for hints")->required();
  app.add_option("threads", options.thread_count, "Threads that make queries; 0: all")->required();
  app.callback([&] {
    auto client = blindfuse::Client::connect(url, options);
    client.sync();
    for (std::string key; std::getline(std::cin, key);) {
      const auto start = std::chrono::steady_clock::now();
      const bool found = client.get(key).has_value();
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
      std::printf("%.9f %d\n", seconds.count(), found ? 1 : 0);
      std::fflush(stdout);
    }
  });
  return blindfuse::run_program(app, argc, argv);
}
