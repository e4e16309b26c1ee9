#include "host/publish/layout_checks.h"

#include <algorithm>
#include <vector>

#include "src/base/errors.h"
#include "src/program/printable.h"

namespace blindfuse {
namespace {

template <typename Number>
std::optional<std::string> differs(const char* what, Number old, std::optional<Number> wanted) {
  if (!wanted || *wanted == old) return std::nullopt;
  return std::string(what) + " was " + std::to_string(old) + " and is now to be " +
         std::to_string(*wanted);
}

std::optional<std::string> lacks_short_key(const Layout& old, bool is_wanted) {
  if (!is_wanted || !old.second || old.second->key_order > 0) return std::nullopt;
  return "queries carry no short key and are now to carry one";
}

// The buckets follow from the keys of a request, and stay if those stay.
std::optional<std::string> differs_in_keys(const Layout& old, const BuildOptions& options) {
  if (options.one_key && old.batch) {
    return "requests were for " + std::to_string(old.batch->keys_per_request) +
           " keys and are now to be for 1";
  }
  const std::optional<BatchCode>& wanted = options.batch;
  if (!wanted) return std::nullopt;
  if (old.batch) {
    return differs("keys_per_request", old.batch->keys_per_request,
                   std::optional(wanted->keys_per_request));
  }
  return "requests were for one key and are now to be for " +
         std::to_string(wanted->keys_per_request);
}

// The server's memory for an epoch.
uint64_t served_bytes(const Layout& layout) {
  return layout.matrix_bytes() + layout.packing_table_bytes();
}

// The reason not to keep a layout that has come to be far too large for its keys, or was never
// chosen by a build: anybody can write a manifest that asks for any amount of memory.
std::optional<std::string> takes_too_much(const Layout& old, const BuildOptions& options,
                                          const Survey& survey) {
  constexpr uint64_t kTimes = 10;
  if (served_bytes(old) <= uint64_t{1} << 30) return std::nullopt;
  const auto plans = plans_of_kind(plan_request(options, survey, &old), kind_of(old));
  if (plans.empty()) return std::nullopt;
  const uint64_t needed = served_bytes(cheapest(plans).layout);
  if (served_bytes(old) / kTimes <= needed) return std::nullopt;
  return "the layout takes " + human_bytes(served_bytes(old)) +
         " of the server's memory, and a new one " + human_bytes(needed);
}

std::optional<std::string> values_do_not_fit(const RecordFormat& old, uint32_t value_room,
                                             const Survey& survey) {
  if (value_room > old.value_bytes) {
    return "room for values of " + std::to_string(value_room) + " bytes is wanted, and there was " +
           std::to_string(old.value_bytes);
  }
  if (survey.longest_value > old.value_bytes) {
    return "values are now up to " + std::to_string(survey.longest_value) + " bytes, and were " +
           std::to_string(old.value_bytes);
  }
  if (old.length_bytes == 0 && survey.shortest_value != old.value_bytes) {
    return std::string("values no longer have all the same length");
  }
  return std::nullopt;
}

}  // namespace

void check_values(DatabaseKind kind, const Survey& survey) {
  if (kind != DatabaseKind::kIndex || survey.longest_value > 0) return;
  throw InputError("every value is empty; an index database needs one value of at least one byte");
}

void check_replacement(const Layout& old, const BuildOptions& options, const Survey& survey,
                       const std::filesystem::path& root) {
  if (old.kind != options.input.kind) {
    const bool was_index = old.kind == DatabaseKind::kIndex;
    throw InputError(root.string() + " is " + (was_index ? "an index" : "a keyword") +
                     " database, and would become " + (was_index ? "a keyword" : "an index") +
                     " database; " + (was_index ? "add" : "leave out") +
                     " --index, or replace the database with --fresh");
  }
  if (options.allow_shrink || survey.key_count >= old.key_count - old.key_count / 2) return;
  throw InputError("the input has " + counted(survey.key_count, "key") + ", and " + root.string() +
                   " has " + counted(old.key_count, "key") +
                   "; if more than half of them are to go, build with --allow-shrink");
}

void check_padding(const Layout& layout, const BuildOptions& options, const Survey& survey,
                   uint64_t input_bytes) {
  constexpr uint64_t kTimes = 10;
  const uint64_t padded = survey.key_count * survey.longest_value;
  const uint64_t matrix = layout.matrix_bytes();
  if (options.allow_padding || options.value_room >= survey.longest_value) return;
  if (matrix <= 10'000'000 || std::min(matrix, padded) / kTimes < input_bytes) return;
  const std::string bytes = std::to_string(survey.percentile99_value);
  throw InputError("every record has room for the longest value, which has " +
                   std::to_string(survey.longest_value) + " bytes: the database would take " +
                   human_bytes(matrix) + ", and the input has " + human_bytes(input_bytes) +
                   "; 99 % of the values have at most " + bytes +
                   " bytes. Cut longer ones (--value-bytes-max " + bytes +
                   " --long-values truncate), split them over several keys "
                   "(docs/applications/package-index.md), or allow the padding "
                   "(--allow-padding)");
}

std::optional<std::string> why_not_kept(const Layout& old, const BuildOptions& options,
                                        const Survey& survey) {
  if (old.kind != options.input.kind) return "the kind of database changed";
  if (options.mode && *options.mode != old.mode()) return "the mode changed";
  if (options.lwe != nullptr && options.lwe != old.lwe) return "the LWE parameters changed";
  const bool keyword = old.kind == DatabaseKind::kKeyword;
  for (const auto& reason :
       {differs("the number of shards", old.shard_count, options.shard_count),
        keyword ? differs("the arity", old.arity, options.arity) : std::nullopt,
        keyword ? differs("digest_bytes", old.record.digest_bytes, options.digest_bytes)
                : std::nullopt,
        differs("query_bits", old.query_bits, options.query_bits),
        differs("response_bits", old.response_bits, options.response_bits),
        differs("hint_bits", old.hint_bits, options.hint_bits),
        differs("the number of levels", old.levels(), options.levels),
        lacks_short_key(old, options.short_key), differs_in_keys(old, options),
        values_do_not_fit(old.record, options.value_room, survey),
        takes_too_much(old, options, survey)}) {
    if (reason) return reason;
  }
  return std::nullopt;
}

std::optional<std::string> why_shards_do_not_fit(const Layout& old, uint64_t fullest_shard) {
  const bool fits = old.kind == DatabaseKind::kIndex ? fullest_shard <= old.row_count
                                                     : fuse_fits(old.fuse(), fullest_shard);
  if (fits) return std::nullopt;
  return "the fullest shard now has " + std::to_string(fullest_shard) +
         (old.batch ? " records" : " keys") + ", more than " + std::to_string(old.row_count) +
         " rows hold";
}

PlanRequest plan_request(const BuildOptions& options, const Survey& survey,
                         const Layout* previous) {
  PlanRequest request;
  request.kind = options.input.kind;
  request.key_count = survey.key_count;
  const bool keyword = request.kind == DatabaseKind::kKeyword;
  request.record =
      record_format_for(keyword ? options.digest_bytes.value_or(8) : 0, survey.shortest_value,
                        std::max(survey.longest_value, options.value_room));
  request.arity = options.arity.value_or(3);
  request.mode = options.mode;
  request.lwe = options.lwe;
  request.lookups_per_client = options.lookups_per_client;
  request.shard_count = options.shard_count;
  request.query_bits = options.query_bits;
  request.response_bits = options.response_bits;
  request.hint_bits = options.hint_bits;
  request.levels = options.levels.value_or(1);
  request.short_key = options.short_key;
  request.batch = options.batch;
  const bool keeps_set = previous != nullptr && options.lwe == nullptr &&
                         options.mode.value_or(previous->mode()) == previous->mode();
  if (keeps_set) {
    request.lwe = previous->lwe;
    request.mode = previous->mode();
    request.is_inherited = !options.mode;
    if (previous->second && !options.levels && !options.batch) {
      request.levels = 2;
      request.short_key = kind_of(*previous).short_key;
    }
  }
  const bool keeps_batch = previous != nullptr && !options.batch && !options.one_key &&
                           request.levels == 1 && request.kind == previous->kind &&
                           options.mode.value_or(previous->mode()) == previous->mode();
  if (keeps_batch) request.batch = previous->batch;
  return request;
}

}  // namespace blindfuse
