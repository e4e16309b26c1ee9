// The parts of the operating system that the client library uses, implemented by the browser:
// randomness and process tokens (in place of src/system/random.cpp and process_token.cpp), sleep,
// and disks.
#include <emscripten/emscripten.h>

#include <algorithm>
#include <ctime>

#include "src/base/errors.h"
#include "src/system/process_token.h"
#include "src/system/random.h"

// Emscripten's own getentropy asks for one byte at a time; a query takes hundreds of thousands.
// clang-format off
EM_JS(int, blindfuse_system_random, (uint8_t* bytes, size_t size), {
  try {
    crypto.getRandomValues(HEAPU8.subarray(bytes, bytes + size));
    return 1;
  } catch (error) {
    return 0;
  }
});

// A worker may wait; without memory that can be shared there is nothing to wait on, and the time
// is spent looking at the clock.
EM_JS(void, blindfuse_system_sleep, (double ms), {
  try {
    const shared = new WebAssembly.Memory({initial: 1, maximum: 1, shared: true});
    Atomics.wait(new Int32Array(shared.buffer), 0, 0, ms);
  } catch (error) {
    const end = performance.now() + ms;
    while (performance.now() < end) {}
  }
});
// clang-format on

// Emscripten's looks at the clock all the time.
extern "C" int nanosleep(const timespec* wanted, timespec* left) {
  blindfuse_system_sleep(static_cast<double>(wanted->tv_sec) * 1e3 +
                         static_cast<double>(wanted->tv_nsec) / 1e6);
  if (left != nullptr) *left = {};
  return 0;
}

// Files are in memory; worker.js keeps the hints.
extern "C" int syncfs(int) { return 0; }

namespace blindfuse {

void fill_from_system(std::span<uint8_t> bytes) {
  constexpr size_t kBytesMax = 65'536;  // the browser's limit for one call
  while (!bytes.empty()) {
    const size_t count = std::min(bytes.size(), kBytesMax);
    if (blindfuse_system_random(bytes.data(), count) == 0) {
      throw ResourceError("the browser gives no random bytes (crypto.getRandomValues)");
    }
    bytes = bytes.subspan(count);
  }
}

// A worker's memory is never copied: there is no fork here.
ProcessToken ProcessToken::current() { return ProcessToken(1); }
bool ProcessToken::is_current() const noexcept { return value_ == 1; }

}  // namespace blindfuse
