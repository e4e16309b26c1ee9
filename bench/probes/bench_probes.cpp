// Measures the best that a GPU can do of each thing that the kernels do: bandwidth against bytes in
// flight, products alone, additions alone. The differences tell where the kernels fall short. Links
// only the C library (bench/gpu/quarter).
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/cuda/command_line.h"
#include "bench/probes/probe.h"
#include "bench/probes/tile_walk.h"
#include "src/base/errors.h"

namespace blindfuse::probes {
namespace {

// The probes in the order in which they run; copies and loads of 128 x 128 bytes that lie together,
// or in columns of 131,072 rows.
constexpr struct {
  const char* name;
  void (*run)(Probe& probe);
} kProbes[] = {
    {"ldg-contiguous", [](Probe& probe) { probe_loads(probe, kPieceBytes); }},
    {"ldg-131k", [](Probe& probe) { probe_loads(probe, 131'072); }},
    {"tma-contiguous", [](Probe& probe) { probe_tensor_copies(probe, kPieceBytes); }},
    {"tma-131k", [](Probe& probe) { probe_tensor_copies(probe, 131'072); }},
    {"limbs", probe_limb_reads},
    {"reductions", probe_reductions},
    {"wgmma", probe_products},
};

std::vector<std::string> names() {
  std::vector<std::string> names;
  for (const auto& each : kProbes) names.emplace_back(each.name);
  return names;
}

void run(const ProbeOptions& options) {
  Probe probe(options);
  for (const auto& each : kProbes) {
    if (!options.probes.empty() && std::ranges::count(options.probes, each.name) == 0) continue;
    probe.begin(each.name);
    each.run(probe);
    probe.end();
  }
  if (!probe.all_right()) {
    throw ResourceError("what the device computed is not right, as the lines above say");
  }
}

}  // namespace
}  // namespace blindfuse::probes

int main(int argc, char** argv) {
  using namespace blindfuse;
  using namespace blindfuse::probes;
  CLI::App app("Times what kernels on a GPU are made of: one line of JSON a measurement.",
               "blindfuse-bench-probes");
  ProbeOptions options;
  bool lists = false;
  app.add_option("--probe", options.probes, "A probe (default: all); any number of times")
      ->check(CLI::IsMember(names()));
  app.add_option("--seconds", options.seconds, "For which the largest products go on")
      ->check(CLI::Range(0.0, 3'600.0))
      ->capture_default_str();
  app.add_option("--json-file", options.json_file, "Write the lines there, too");
  app.add_flag("--list", lists, "Print the probes' names, and nothing else");
  app.callback([&] {
    if (!lists) return run(options);
    for (const std::string& name : names()) std::puts(name.c_str());
  });
  return bench::parse_and_run(app, argc, argv);
}
