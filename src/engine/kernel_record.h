// The record of one device's kernels: which checks each has passed, and which must not be used any
// more.
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

// The occasion on which a kernel's result was compared with one that was computed elsewhere.
enum class CheckStage {
  kSelfTest,  // small problems, in a process of its own, before anything else
  kMatrix,    // the matrix itself, before the first query
  kCanary,    // a query of the server's own among those of clients
  kProduct,   // the products of a batch of clients' queries, with what the queries add up to
  kBuild,     // something that is to be published
};

// "self-test", "matrix", "canary", "product", "build"
std::string_view name_of(CheckStage stage);

// Kernels have the names that --engine takes. The others are "packing", "rounding", "tables" and
// "weighing". A kernel that has failed a check is in quarantine until the process ends. Any thread.
class KernelRecord {
 public:
  // Called for each kernel that comes into quarantine, by the thread that reported it, without a
  // lock held.
  using Listener =
      std::function<void(std::string_view kernel, CheckStage stage, const std::string& why)>;

  explicit KernelRecord(Listener on_quarantine = {}) : on_quarantine_(std::move(on_quarantine)) {}

  void note_passed(std::string_view kernel, CheckStage stage);
  // Counts a failure that may be due to the kernel's input, and leaves the kernel in use.
  void count_failed(std::string_view kernel, CheckStage stage);
  // Puts the kernel into quarantine. why: for people, "a product differs in 3 of 1,040 columns".
  void note_failed(std::string_view kernel, CheckStage stage, const std::string& why);

  bool is_fit(std::string_view kernel) const;
  // The reason for which it is in quarantine; nothing if it is not.
  std::optional<std::string> why_unfit(std::string_view kernel) const;

  struct Count {
    std::string kernel;
    CheckStage stage = CheckStage::kSelfTest;
    uint64_t passed = 0;
    uint64_t failed = 0;
  };
  // The counts of every kernel and stage that had a check, in the order of their names.
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
