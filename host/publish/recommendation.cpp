#include "host/publish/recommendation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <utility>

#include "src/arithmetic/ring/ring_dimension.h"

namespace blindfuse {
namespace {

// A query's share of a full batch. It cannot be less than the time in which memory gives the bytes,
// which all queries of the batch share.
double batch_share(double multiply_adds, double rate, double bytes, const CoreRates& rates) {
  const double reads = bytes / rates.memory_bytes_per_second / static_cast<double>(kFullBatch);
  return std::max(multiply_adds / rate, reads);
}

// The time for the polynomials from which a pack's key switches start.
double traces_seconds(uint32_t key_order, const CoreRates& rates) {
  if (key_order == 0) return rates.second_traces_seconds;
  return key_order * std::log2(key_order) * rates.second_short_trace_seconds;
}

// The time is the same alone and in batches: no two queries share any of it.
double second_level_seconds(const Layout& layout, const CoreRates& rates) {
  if (!layout.second) return 0;
  constexpr auto kBlockRows = static_cast<uint32_t>(ring::kDimension);
  const uint32_t blocks = (layout.second_row_count() + kBlockRows - 1) / kBlockRows;
  const double packs = layout.second_pack_count();
  return packs * (layout.second_key_switches() * rates.second_switch_seconds +
                  traces_seconds(layout.second->key_order, rates)) +
         static_cast<double>(layout.second_column_count()) * blocks * rates.second_column_seconds;
}

// An alternative takes at most this many times the bytes of the best plan, unless secrecy or
// single keys are its reason.
constexpr double kMoreBytesMax = 2.0;
// The packing tables of an alternative take at most this many times the bytes of the matrix, or
// kAutoPackingBytesMax.
constexpr uint64_t kTablesPerMatrix = 2;
// A layout that comes this near to the least of a goal will do for it.
constexpr double kNearly = 1.15;

constexpr LayoutKind kHintKind{Mode::kHint, 1, false};
constexpr LayoutKind kOneLevelKind{Mode::kPacked, 1, false};

std::vector<LayoutKind> open_kinds(const PlanRequest& request, bool levels_fixed) {
  if (request.batch) return {{Mode::kPacked, 1, false, request.batch}};
  std::vector<LayoutKind> kinds = {kHintKind};
  for (const LayoutKind& kind :
       {kOneLevelKind, LayoutKind{Mode::kPacked, 2, false}, LayoutKind{Mode::kPacked, 2, true}}) {
    const bool fits_levels = !levels_fixed || kind.levels == request.levels;
    const bool fits_key = kind.levels == 1 || kind.short_key || !request.short_key;
    if (fits_levels && fits_key) kinds.push_back(kind);
  }
  return kinds;
}

bool has_large_tables(const Layout& layout) {
  return layout.packing_table_bytes() >
         std::max(kAutoPackingBytesMax, kTablesPerMatrix * layout.matrix_bytes());
}

// "35 % fewer bytes" or "120 times fewer bytes", of a part that is less than the whole.
std::string less_by(double part, double whole, const std::string& what) {
  char text[32];
  const bool is_small = part < whole / 10;
  std::snprintf(text, sizeof text, is_small ? "%.0f times " : "%.0f %% ",
                is_small ? whole / part : 100.0 * (1.0 - part / whole));
  return text + what;
}

std::string times_more(double more, double fewer, const std::string& what) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f times the ", more / fewer);
  return text + what;
}

// An amount of which an operator may want less than the best plan takes.
struct Goal {
  double (*amount)(const Plan& plan, const CoreRates& rates);
  // A difference is worth a mention if the amount is at most this part of the best plan's, and this
  // much less.
  double part_max;
  double less_min;
  std::string (*reason)(double amount, double of_best);
};

double first_bytes(const Plan& plan, const CoreRates& rates) {
  return static_cast<double>(layout_cost(plan, rates).first_bytes);
}
double epoch_bytes(const Plan& plan, const CoreRates&) {
  return static_cast<double>(plan.total_bytes);
}
double seconds_of_core(const Plan& plan, const CoreRates& rates) {
  return 1.0 / layout_cost(plan, rates).lookups_per_core_second;
}
double memory_bytes(const Plan& plan, const CoreRates& rates) {
  return static_cast<double>(layout_cost(plan, rates).server_bytes);
}

// The goals are in the order in which most operators ask for them.
constexpr std::array kGoals = {
    Goal{epoch_bytes, 0.9, 0,
         [](double amount, double of_best) {
           return less_by(amount, of_best, "fewer bytes for a client in an epoch");
         }},
    Goal{seconds_of_core, 0.8, 1e-3,
         [](double amount, double of_best) {
           return times_more(of_best, amount, "look-ups a second");
         }},
    Goal{memory_bytes, 0.8, 10e6,
         [](double amount, double of_best) {
           return less_by(amount, of_best, "less server memory");
         }},
    Goal{first_bytes, 0.5, 1e6,
         [](double amount, double of_best) {
           return less_by(amount, of_best, "fewer bytes in a first look-up");
         }},
};

class Alternatives {
 public:
  Alternatives(const Plan& best, const CoreRates& rates) : best_(best), rates_(rates) {}

  void add(const Plan& plan, std::string reason) {
    if (plan.layout == best_.layout) return;
    const auto there = std::ranges::find(
        found_, plan.layout, [](const Alternative& other) { return other.plan.layout; });
    if (there != found_.end()) {
      there->reasons.push_back(std::move(reason));
    } else if (found_.size() < kAlternativesMax) {
      found_.push_back({plan, {std::move(reason)}});
    }
  }

  // Adds the best of `plans` for this goal. An alternative that is there already comes first if it
  // is nearly as good.
  void add_for(const Goal& goal, const std::vector<Plan>& plans) {
    const double of_best = goal.amount(best_, rates_);
    const double most = kMoreBytesMax * static_cast<double>(best_.total_bytes);
    const Plan* least = &best_;
    for (const Plan& plan : plans) {
      const bool is_allowed =
          static_cast<double>(plan.total_bytes) <= most && !has_large_tables(plan.layout);
      if (is_allowed && amount(goal, plan) < amount(goal, *least)) least = &plan;
    }
    for (const Alternative& other : found_) {
      if (amount(goal, other.plan) <= kNearly * amount(goal, *least)) least = &other.plan;
    }
    const double found = amount(goal, *least);
    if (found > goal.part_max * of_best || of_best - found < goal.less_min) return;
    add(Plan(*least), goal.reason(found, of_best));
  }

  std::vector<Alternative> take() { return std::move(found_); }

 private:
  double amount(const Goal& goal, const Plan& plan) const { return goal.amount(plan, rates_); }

  const Plan& best_;
  const CoreRates& rates_;
  std::vector<Alternative> found_;
};

// The best layout of the same data for one key a request, with everything else left open.
std::optional<Plan> best_for_one_key(const PlanRequest& request) {
  PlanRequest open = request;
  open.shard_count.reset();
  open.query_bits.reset();
  open.response_bits.reset();
  open.hint_bits.reset();
  const std::vector<Plan> plans = plans_of_kind(open, kOneLevelKind);
  if (plans.empty()) return std::nullopt;
  return cheapest(plans);
}

std::string reason_for_one_key(std::optional<uint32_t> keys_that_pay) {
  if (!keys_that_pay) return "fewer bytes for every number of keys";
  return "fewer bytes where clients ask for fewer than " + std::to_string(*keys_that_pay) +
         " keys at a time";
}

}  // namespace

LayoutCost layout_cost(const Plan& plan, const CoreRates& rates) {
  const Layout& layout = plan.layout;
  const auto matrix = static_cast<double>(layout.matrix_bytes());
  const auto tables = static_cast<double>(layout.packing_table_bytes());
  const double digits = tables / sizeof(uint32_t);
  const double second = second_level_seconds(layout, rates);
  LayoutCost cost;
  cost.later_bytes = request_bytes(layout);
  cost.first_bytes = plan.sync_bytes + cost.later_bytes;
  cost.server_bytes = layout.matrix_bytes() + layout.packing_table_bytes() + layout.hint_bytes();
  cost.alone_seconds = matrix / rates.scan_alone_bytes_per_second +
                       tables / rates.pack_alone_bytes_per_second + second;
  cost.batch_seconds =
      batch_share(matrix, rates.scan_batch_multiply_adds_per_second, matrix, rates) +
      batch_share(digits, rates.pack_batch_multiply_adds_per_second, tables, rates) + second;
  cost.lookups_per_core_second =
      (layout.batch ? layout.batch->keys_per_request : 1) / cost.batch_seconds;
  return cost;
}

std::optional<uint32_t> keys_that_pay(const Layout& layout, const Layout& one_key) {
  const uint64_t keys = request_bytes(layout) / request_bytes(one_key) + 1;
  if (keys > layout.batch->keys_per_request) return std::nullopt;
  return static_cast<uint32_t>(keys);
}

Recommendation recommend(const PlanRequest& request, bool levels_fixed, const CoreRates& rates) {
  Recommendation made;
  made.best = cheapest(plan_modes(request));
  for (const LayoutKind& kind : open_kinds(request, levels_fixed)) {
    const std::vector<Plan> plans = plans_of_kind(request, kind);
    made.plans.insert(made.plans.end(), plans.begin(), plans.end());
  }
  Alternatives found(made.best, rates);
  if (request.batch) {
    if (const auto one_key = best_for_one_key(request)) {
      made.keys_that_pay = keys_that_pay(made.best.layout, one_key->layout);
      found.add(*one_key, reason_for_one_key(made.keys_that_pay));
    }
  } else if (made.best.layout.mode() == Mode::kPacked) {
    const std::vector<Plan> hints = plans_of_kind(request, kHintKind);
    if (!hints.empty()) found.add(cheapest(hints), "secrecy rests on LWE alone");
  }
  for (const Goal& goal : kGoals) found.add_for(goal, made.plans);
  made.alternatives = found.take();
  return made;
}

}  // namespace blindfuse
