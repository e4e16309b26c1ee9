// Puts load on a server from many clients at once, and reports the answers and times that they get.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>

#include "bench/load/measurement.h"
#include "src/base/errors.h"
#include "src/program/program.h"

namespace blindfuse::load {
namespace {

constexpr const char* kHelp =
    R"(Every query is a real one, made before the clock starts, each under a secret of its own; who sends
it makes no difference to the server. When all of --pool are sent they are sent again, which no
client ever does: it is for measuring only. The same bytes again tell the server nothing more about
the secret, but they do tell that the same key was asked for again. Never load a server with keys
that matter. What a server does takes the same time whatever is asked for.

A look-up is of one key. If the database has requests for several keys, every query asks for as many
as it can, each in a bucket of its own. A key that comes twice in a query is asked for once. A key
for which no bucket is free is left out: it is counted, and not asked for.

Latency is that of a request: from its sending in the closed loop, from its arrival in the open
loop, whether or not it could be sent then, so that a slow server does not hide behind clients that
wait for it. Only what was answered with 200 is in it. Bytes are those of requests and answers with
their heads, within TLS if there is any.

Exit status: 0 done, 1 failed, answers were wrong or there were none, 2 misuse.)";

// A folder for hints, unless one is named.
struct TemporaryFolder {
  explicit TemporaryFolder(Options& options) {
    if (!options.cache.empty()) return;
    std::string name = std::filesystem::temp_directory_path() / "blindfuse-load-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) {
      throw InputError("cannot make " + name + "; name a folder for the hints with --cache");
    }
    options.cache = path = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path.empty()) std::filesystem::remove_all(path, ignored);
  }

  std::filesystem::path path;
};

void run(Options options) {
  check_options(options);
  const TemporaryFolder temporary(options);
  const Measurement measured = measure(options);
  // Prints a figure a line for people.
  if (options.json) {
    std::puts(measured.figures.dump().c_str());
  } else {
    for (const auto& [name, value] : measured.figures.items()) {
      std::printf("%-20s %s\n", name.c_str(), value.dump().c_str());
    }
  }
  std::fflush(stdout);
  if (!report_trouble(measured)) throw ExitStatus{kExitFailed};
}

}  // namespace
}  // namespace blindfuse::load

int main(int argc, char** argv) {
  using namespace blindfuse::load;
  CLI::App app("Measures a server under the load of many clients.", "blindfuse-bench-load");
  app.footer(kHelp);
  Options options;
  add_options(app, options);
  app.callback([&options] { run(options); });
  return blindfuse::run_program(app, argc, argv);
}
