#include "cuda/device/launch_trail.h"

#include <algorithm>
#include <deque>
#include <mutex>
#include <utility>

namespace blindfuse::launch_trail {
namespace {

// Two batches of packed responses, and some. A batch with buckets has more launches, of the same
// kernels.
constexpr size_t kKeptMax = 64;

struct Noted {
  cudaStream_t stream;
  uint64_t number;
  std::string what;
};

struct Trail {
  std::mutex mutex;
  std::deque<Noted> noted;
  uint64_t count = 0;
};

Trail& trail() {
  // Never destroyed: streams of static objects may go after it.
  static auto* const all = new Trail;
  return *all;
}

}  // namespace

void note(cudaStream_t stream, std::string what) {
  Trail& all = trail();
  const std::lock_guard lock(all.mutex);
  if (all.noted.size() == kKeptMax) {
    const auto equal = std::find_if(all.noted.begin(), all.noted.end(), [&](const Noted& noted) {
      return noted.stream == stream && noted.what == what;
    });
    all.noted.erase(equal == all.noted.end() ? all.noted.begin() : equal);
  }
  all.noted.push_back({stream, ++all.count, std::move(what)});
}

uint64_t position() {
  Trail& all = trail();
  const std::lock_guard lock(all.mutex);
  return all.count;
}

void forget(cudaStream_t stream, uint64_t up_to) {
  Trail& all = trail();
  const std::lock_guard lock(all.mutex);
  std::erase_if(all.noted, [&](const Noted& noted) {
    return noted.stream == stream && noted.number <= up_to;
  });
}

std::string text() {
  Trail& all = trail();
  const std::lock_guard lock(all.mutex);
  std::string text;
  for (size_t i = 0; i < all.noted.size();) {
    const std::string& what = all.noted[i].what;
    size_t times = 1;
    while (i + times < all.noted.size() && all.noted[i + times].what == what) ++times;
    text += text.empty() ? "; in the device since the last good wait: " : ", ";
    text += what;
    if (times > 1) text += " (" + std::to_string(times) + " times)";
    i += times;
  }
  return text;
}

}  // namespace blindfuse::launch_trail
