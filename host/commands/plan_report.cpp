#include "host/commands/plan_report.h"

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "host/commands/batch_report.h"
#include "host/commands/cost_options.h"
#include "host/commands/layout_table.h"
#include "host/publish/plan_comparison.h"
#include "src/program/amount.h"
#include "src/program/printable.h"

namespace blindfuse {
namespace {

// The answer to a question: everything that is printed.
class PlanAnswer {
 public:
  explicit PlanAnswer(const PlanQuestion& question)
      : question_(question),
        lookups_(question.request.lookups_per_client),
        kinds_(plan_kinds(question.request)),
        chooser_(kinds_, {question.prefer.value_or(Preference::kFewPacks), question.rates.core},
                 lookups_),
        best_(chooser_.best()) {
    if (question.request.batch) {
      batch_.emplace(question.request, best_, question.rates.core);
    } else {
      compared_ = plans_worth_comparing(question.request, !question.levels_fixed, chooser_, best_);
    }
  }

  void print_json() const;
  void print_text() const;
  const Plan& best() const { return best_; }

 private:
  bool is_fixed() const { return question_.request.mode || question_.request.lwe != nullptr; }
  nlohmann::json item(const Plan& plan) const {
    return plan_json(plan, question_.rates.core, lookups_);
  }
  std::string choice() const;
  void print_kept() const;
  void print_packing() const;
  void print_comparison() const;
  void print_prices() const;

  const PlanQuestion& question_;
  const uint64_t lookups_;
  const std::vector<std::vector<Plan>> kinds_;
  const PlanChooser chooser_;
  const Plan& best_;
  std::vector<Plan> compared_;        // with one key a request
  std::optional<BatchReport> batch_;  // with several
};

std::string plans_heading(const Layout& layout) {
  const LayoutKind kind = kind_of(layout);
  std::string text = std::string(mode_name(kind.mode)) + " mode, ";
  if (kind.levels == 2) text += kind.short_key ? "two levels, short key, " : "two levels, ";
  text += layout.lwe->name;
  if (kind.batch) {
    return text + ", " + counted(kind.batch->keys_per_request, "key") + " a request in " +
           counted(kind.batch->bucket_count, "bucket") +
           ": queries are for all buckets, with a packing key of 24 KiB";
  }
  if (kind.mode == Mode::kHint) return text + ": clients download the hint once an epoch";
  return text + (kind.short_key ? ": no hint, but queries carry two keys of 24 KiB"
                                : ": no hint, but queries carry a packing key of 24 KiB");
}

void PlanAnswer::print_json() const {
  nlohmann::json list = nlohmann::json::array();
  for (const std::vector<Plan>& plans : kinds_) {
    for (const Plan& plan : plans) {
      list.push_back(item(plan));
      list.back()["chosen"] = &plan == &best_;
    }
  }
  nlohmann::json compared = nlohmann::json::array();
  for (const Plan& plan : compared_) {
    compared.push_back(item(plan));
    compared.back()["options"] = options_for(plan.layout);
  }
  if (batch_) {
    for (const Plan& plan : batch_->compared()) compared.push_back(batch_->item(plan));
  }
  nlohmann::json report = {
      {"lookups_per_client", lookups_},
      {"layouts", std::move(list)},
      {"compared", std::move(compared)},
      {"batch", kFullBatch},
      {"dollars_per_gigabyte", kDollarsAGigabyte},
      {"dollars_per_core_hour", kDollarsACoreHour},
      {"rates", nlohmann::json::parse(serialize_rates(question_.rates))},
  };
  if (batch_) report["several_keys"] = batch_->summary();
  if (question_.prefer) report["prefer"] = preference_name(*question_.prefer);
  if (question_.kept) report["kept"] = layout_json(*question_.kept);
  if (!question_.why_not_kept.empty()) report["why_not_kept"] = question_.why_not_kept;
  std::puts(report.dump(2).c_str());
}

// Which one `build` would choose, and why.
std::string PlanAnswer::choice() const {
  const std::string with = "with " + counted(lookups_, "look-up") + " a client ";
  const std::string total = human_bytes(best_.total_bytes);
  if (kinds_.size() == 1) {
    return "* is what `build` would choose: " + with + total + " in all";
  }
  if (question_.prefer) {
    return "* is the best of its kind. `build --prefer " + preference_name(*question_.prefer) +
           "` would choose:\n  " + options_for(best_.layout) + "\n  " + with + "it takes " + total +
           " in all";
  }
  const bool packed = best_.layout.mode() == Mode::kPacked;
  const Plan& other = cheapest(packed ? kinds_.front() : kinds_.back());
  return "* is the best of its mode. `build` would choose the " +
         std::string(mode_name(best_.layout.mode())) + " mode's:\n  " + with + "it takes " + total +
         " in all, and the " + std::string(mode_name(other.layout.mode())) + " mode's " +
         human_bytes(other.total_bytes);
}

void PlanAnswer::print_kept() const {
  if (question_.kept) {
    std::printf(
        "A build keeps the layout that is there, and --fresh chooses again:\n  %s, %s up "
        "and %s down a %s\n\n",
        options_for(*question_.kept).c_str(), human_bytes(question_.kept->query_bytes()).c_str(),
        human_bytes(question_.kept->response_bytes()).c_str(),
        request_name(*question_.kept).c_str());
  } else if (!question_.why_not_kept.empty()) {
    std::printf("A build chooses the layout again, because %s\n\n", question_.why_not_kept.c_str());
  }
}

// What the server's memory has to do with it.
void PlanAnswer::print_packing() const {
  const Layout& packed = chooser_.best_of(kinds_.back()).layout;
  if (packed.mode() != Mode::kPacked) return;
  std::printf(
      "  In the packed mode the server keeps %s of packing tables and %s of matrix;\n"
      "  more shards make them larger",
      human_bytes(packed.packing_table_bytes()).c_str(),
      human_bytes(packed.matrix_bytes()).c_str());
  if (!question_.prefer && batch_) {
    std::printf(
        ", so that the best is the one with the fewest bytes of those\n"
        "  whose tables take at most twice as much as the matrix, or at most %.0f MiB",
        static_cast<double>(kPackingBytesUnasked) / (1 << 20));
    static_assert(kBatchTablesPerMatrix == 2);
  } else if (!question_.prefer) {
    std::printf(
        ", so that the best is the one with the fewest packs of\n"
        "  those with up to %.0f %% more bytes than the fewest",
        100.0 * (kBytesForFewerPacks - 1.0));
  }
  std::printf(".\n");
}

void PlanAnswer::print_comparison() const {
  std::printf("\n* and the best of each other kind:\n%s",
              comparison_table(compared_, question_.rates.core, lookups_).c_str());
  std::printf(
      "  once: tables, and hint or masks, in each epoch; up and down: a look-up; server: memory.\n"
      "  ms alone: of one core, for a look-up while no other waits; 1/s core: look-ups a second\n"
      "  of one core in batches of %zu. Both are of the CPU's engine.\n",
      kFullBatch);
}

void PlanAnswer::print_prices() const {
  std::printf(
      "  $ per 1M: a million look-ups at %.2f US dollars for each GB transferred and %.4f for "
      "each\n"
      "  core-hour, the prices of a public cloud in the ChalametPIR paper.\n",
      kDollarsAGigabyte, kDollarsACoreHour);
  std::printf("  Rates: %s, %s.\n", printable(question_.rates.origin.processor).c_str(),
              question_.rates_file.empty()
                  ? "measured here; --calibrate measures again, --rates plans for another machine"
                  : ("from " + question_.rates_file).c_str());
}

void PlanAnswer::print_text() const {
  print_kept();
  std::printf("%s, values of up to %s, %s a client and epoch\n",
              counted(question_.request.key_count, "key").c_str(),
              counted(question_.longest_value, "byte").c_str(),
              counted(lookups_, "look-up").c_str());
  for (const std::vector<Plan>& plans : kinds_) {
    const Plan& of_kind = chooser_.best_of(plans);
    std::printf("\n%s\n%s", plans_heading(of_kind.layout).c_str(),
                plan_table(plans, of_kind, 11).c_str());
  }
  const Layout& best = best_.layout;
  std::printf("\n%s\n  (%s of tables and %s once an epoch, %s up and %s down a %s).\n",
              choice().c_str(), human_bytes(best_.sync_bytes).c_str(),
              best.mode() == Mode::kHint ? "hint" : "masks",
              human_bytes(best.query_bytes()).c_str(), human_bytes(best.response_bytes()).c_str(),
              request_name(best).c_str());
  std::printf("  More shards make queries smaller, and responses and hint or masks larger.\n");
  print_packing();
  if (!is_fixed()) {
    std::printf(
        "  Packed layouts whose packing tables take more than the matrix, and more than %.0f MiB,\n"
        "  are left out here; --mode packed shows them.\n",
        static_cast<double>(kPackingBytesUnasked) / (1 << 20));
  }
  if (batch_) {
    std::fputs(batch_->text().c_str(), stdout);
  } else {
    print_comparison();
  }
  print_prices();
}

}  // namespace

void report_plans(const PlanQuestion& question, bool as_json) {
  const PlanAnswer answer(question);
  // Rates of another machine plan for that one.
  const bool is_here = question.rates_file.empty();
  if (question.request.batch && is_here) warn_of_memory(answer.best().layout);
  if (as_json) {
    answer.print_json();
  } else {
    answer.print_text();
  }
}

}  // namespace blindfuse
