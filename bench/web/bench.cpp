// What preparing a query takes, on one thread: the same measure in WebAssembly and natively.
//
// Prints one JSON object: bytes of the public matrix a second, the best and the median of several
// rounds, for the keystream alone, the product of a secret with panels that are there, and both as
// prepare_queries() has them; and the seconds that a query of WordNet's row count takes.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "client/prepared_query.h"
#include "client/secret_product.h"

namespace blindfuse {
namespace {

constexpr uint32_t kDimension = 1774;
constexpr uint32_t kRows = 23'552;  // of WordNet's database
constexpr int kRounds = 101;
constexpr uint64_t kPanels = 3;  // a slice that a busy machine may well leave alone

using std::chrono::steady_clock;

struct Seconds {
  std::vector<double> rounds;

  template <class Work>
  void measure(Work work) {
    const auto start = steady_clock::now();
    work();
    rounds.push_back(std::chrono::duration<double>(steady_clock::now() - start).count());
  }
  double best() const { return *std::min_element(rounds.begin(), rounds.end()); }
  double median() const {
    std::vector<double> sorted = rounds;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
};

std::string rates(const char* name, const Seconds& seconds, double bytes) {
  char text[200];
  std::snprintf(text, sizeof text, "\"%s\": {\"best_mb_s\": %.0f, \"median_mb_s\": %.0f}", name,
                bytes / seconds.best() / 1e6, bytes / seconds.median() / 1e6);
  return text;
}

void run() {
  const PublicMatrix a(MatrixSeed{1, 2, 3}, kDimension);
  std::vector<uint32_t> panel(a.panel_words());
  SecretBuffer<uint32_t> secret(kDimension);
  sample_ternary(fill_from_system, secret.span());
  const SecretFactor factor(secret.span());
  std::vector<uint32_t> words(kPanelRows);
  uint32_t* const words_at = words.data();
  Seconds keystream, product, both, query, eight;
  for (int round = 0; round < kRounds; ++round) {
    keystream.measure([&] {
      for (uint64_t j = 0; j < kPanels; ++j) a.fill_panel(j, panel);
    });
    product.measure([&] {
      for (uint64_t j = 0; j < kPanels; ++j) {
        add_secret_products(panel, {&factor, 1}, {&words_at, 1});
      }
    });
    both.measure([&] {
      for (uint64_t j = 0; j < kPanels; ++j) {
        add_panel_products(a, j, {&factor, 1}, {&words_at, 1}, panel);
      }
    });
    if (round % 5 == 0) {
      query.measure([&] { prepare_queries(a, kRows, 1, 1, 1, fill_from_system); });
    }
    if (round % 20 == 0) {
      eight.measure([&] { prepare_queries(a, kRows, 1, 8, 1, fill_from_system); });
    }
  }
  const double bytes = static_cast<double>(kPanels * a.panel_words() * 4);
  std::printf(
      "{%s, %s, %s, \"query_seconds\": {\"best\": %.4f, \"median\": %.4f}, "
      "\"eight_queries_seconds\": {\"best\": %.4f, \"median\": %.4f}}\n",
      rates("keystream", keystream, bytes).c_str(), rates("product", product, bytes).c_str(),
      rates("panel_product", both, bytes).c_str(), query.best(), query.median(), eight.best(),
      eight.median());
}

}  // namespace
}  // namespace blindfuse

int main(int argc, char** argv) {
  const bool asks_for_help = argc == 2 && argv[1] == std::string("--help");
  if (argc > 1) {
    std::fputs(
        "usage: blindfuse-bench-web\nTimes the making of queries on one thread. Prints JSON.\n",
        asks_for_help ? stdout : stderr);
    return asks_for_help ? 0 : 2;
  }
  blindfuse::run();
}
