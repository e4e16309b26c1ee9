#include "host/cpu/amx/amx.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace blindfuse {

#if defined(__x86_64__)
namespace {

bool has_tiles() {
  constexpr long kRequestPermission = 0x1023;
  constexpr long kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

// Some compilers do not know these by name (Intel's Software Developer's Manual, CPUID, leaf 7).
bool has_instructions() {
  constexpr unsigned kTile = 1u << 24;
  constexpr unsigned kInt8 = 1u << 25;
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & kTile) != 0 && (d & kInt8) != 0;
}

}  // namespace

bool amx_runs_here() { return has_instructions() && has_tiles(); }
#else
bool amx_runs_here() { return false; }
#endif

}  // namespace blindfuse
