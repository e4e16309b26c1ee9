// What many client tests need: a folder of their own, a clock that they move, what a response
// brought, and the text of an error.
#pragma once

#include <stdlib.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "client/deadline.h"
#include "client/transport.h"

namespace blindfuse {

// A folder of its own for one test, removed with it.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "blindfuse-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// A monotonic clock that moves when a test says so, from any thread.
class HandClock {
 public:
  void advance(std::chrono::milliseconds by) { now_ms_ += by.count(); }
  Deadline::Clock clock() {
    return [this] { return Deadline::TimePoint(std::chrono::milliseconds(now_ms_.load())); };
  }

 private:
  std::atomic<int64_t> now_ms_ = 1'000'000;
};

struct CollectedBody : BodyReceiver {
  std::string text;
  void begin(int, std::optional<uint64_t>) override {}
  void receive(std::span<const uint8_t> bytes) override {
    text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
};

// The text of the error of this type that the call throws.
template <class Error, class Call>
std::string message_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace blindfuse
