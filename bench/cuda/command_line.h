// run_program() (src/program/program.h) for programs that link only the C library.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "src/base/errors.h"
#include "src/program/program.h"

namespace blindfuse::bench {

inline int parse_and_run(CLI::App& app, int argc, char** argv) {
  const auto fail = [&](const char* what, int status = kExitFailed) {
    std::fprintf(stderr, "%s: %s\n", app.get_name().c_str(), what);
    return status;
  };
  try {
    app.parse(argc, argv);
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return 0;
    return fail("cannot write to standard output");
  } catch (const CLI::Success& asked) {  // --help
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    app.exit(error);
    return kExitUsageError;
  } catch (const UsageError& error) {
    return fail(error.what(), kExitUsageError);
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}

}  // namespace blindfuse::bench
