#include "src/base/errors.h"

#include <cstdio>
#include <cstdlib>

namespace blindfuse {

void abort_broken_invariant(const char* what, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: broken invariant: %s\n", file, line, what);
  std::abort();
}

}  // namespace blindfuse
