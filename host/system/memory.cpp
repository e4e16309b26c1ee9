#include "host/system/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "host/system/limits.h"
#include "src/base/errors.h"

namespace blindfuse {
namespace {

// The kernel's estimate of the memory that a new program could use without swapping; 0: it does not
// say.
uint64_t available_memory_bytes() {
  uint64_t kibibytes = 0;
  if (std::FILE* file = std::fopen("/proc/meminfo", "r")) {
    char line[128];
    unsigned long long value = 0;
    while (std::fgets(line, sizeof line, file) != nullptr) {
      if (std::sscanf(line, "MemAvailable: %llu kB", &value) == 1) kibibytes = value;
    }
    std::fclose(file);
  }
  return kibibytes * 1024;
}

[[noreturn]] void throw_too_large(std::string_view what, uint64_t bytes, const char* who,
                                  uint64_t available, const char* cure) {
  throw ResourceError(std::string(what) + " needs " + std::to_string(bytes) + " bytes of memory; " +
                      who + " has " + std::to_string(available) + " available" + cure);
}

}  // namespace

void check_memory(std::string_view what, uint64_t bytes) {
  // The kernel hands out addresses for more than it has and kills the process later; ask first.
  const uint64_t available = available_memory_bytes();
  if (available != 0 && bytes > available) {
    throw_too_large(what, bytes, "this machine", available, "");
  }
  const auto of_group = ControlGroups().available_memory_bytes();
  if (of_group && bytes > *of_group) {
    throw_too_large(what, bytes, "the control group of this process", *of_group,
                    ": raise its limit (MemoryMax= of a systemd unit, --memory of a container)");
  }
}

std::shared_ptr<void> map_memory(std::string_view what, uint64_t bytes) {
  const uint64_t size = std::max<uint64_t>(1, bytes);
  void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    const uint64_t available = available_memory_bytes();
    const bool is_limited = size <= available;
    throw_too_large(
        what, size, "this machine", available,
        is_limited ? ", but this process gets no more: raise its limit (ulimit -v)" : "");
  }
  madvise(data, size, MADV_HUGEPAGE);  // fewer TLB misses in a scan; merely slower without
  return {data, [size](void* memory) { munmap(memory, size); }};
}

}  // namespace blindfuse
