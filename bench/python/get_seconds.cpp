// What a get takes in C++, for bench/python/get_overhead.py: asks for each key that comes in a line
// of its own, and answers with a line of seconds.
#include <chrono>
#include <cstdio>
#include <exception>
#include <iostream>
#include <string>

#include <blindfuse/client.h>

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: blindfuse-bench-get URL CACHE THREADS\n");
    return 2;
  }
  try {
    blindfuse::ClientOptions options;
    options.cache_folder = argv[2];
    options.thread_count = static_cast<unsigned>(std::stoul(argv[3]));
    auto client = blindfuse::Client::connect(argv[1], options);
    client.sync();
    for (std::string key; std::getline(std::cin, key);) {
      const auto start = std::chrono::steady_clock::now();
      const bool found = client.get(key).has_value();
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
      std::printf("%.9f %d\n", seconds.count(), found ? 1 : 0);
      std::fflush(stdout);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "blindfuse-bench-get: %s\n", error.what());
    return 1;
  }
}
