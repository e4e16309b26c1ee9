// What is known of the kernels of one device: which checks each has passed, and which must not be
// used any more.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace blindfuse {

// When a kernel's result was compared with one that was computed elsewhere.
enum class CheckStage {
  kSelfTest,  // small problems, in a process of its own, before anything else
  kMatrix,    // the matrix itself, before the first query
  kCanary,    // a query of the server's own among those of clients
  kProduct,   // the products of a batch of clients' queries, with what the queries add up to
  kBuild,     // something that is to be published
};

// "self-test", "matrix", "canary", "product", "build"
std::string_view name_of(CheckStage stage);

// Kernels have the names that --engine takes, and those of the others: "packing", "rounding",
// "tables", "weighing". One that has failed a check is in quarantine for as long as the process
// lives. Any thread.
class KernelRecord {
 public:
  // Told of each kernel that comes into quarantine, by the thread that reported it, with no lock
  // held.
  using Listener =
      std::function<void(std::string_view kernel, CheckStage stage, const std::string& why)>;

  explicit KernelRecord(Listener on_quarantine = {}) : on_quarantine_(std::move(on_quarantine)) {}

  void note_passed(std::string_view kernel, CheckStage stage);
  // Counts a failure that may lie with what the kernel was given, and leaves it in use.
  void count_failed(std::string_view kernel, CheckStage stage);
  // Into quarantine it goes. why: for people, "a product differs in 3 of 1,040 columns".
  void note_failed(std::string_view kernel, CheckStage stage, const std::string& why);

  bool is_fit(std::string_view kernel) const;
  // Why it is in quarantine; nothing when it is not.
  std::optional<std::string> why_unfit(std::string_view kernel) const;

  struct Count {
    std::string kernel;
    CheckStage stage = CheckStage::kSelfTest;
    uint64_t passed = 0;
    uint64_t failed = 0;
  };
  // Of every kernel and stage that had a check, in the order of their names.
  std::vector<Count> counts() const;

 private:
  struct Results {
    uint64_t passed = 0;
    uint64_t failed = 0;
  };

  const Listener on_quarantine_;
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, CheckStage>, Results> results_;
  std::map<std::string, std::string, std::less<>> quarantined_;  // and why
};

}  // namespace blindfuse
