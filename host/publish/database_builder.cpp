#include "host/publish/database_builder.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <string_view>
#include <utility>

#include "host/database/directory.h"
#include "host/engines/engine_factory.h"
#include "host/publish/hint_stage.h"
#include "host/publish/input.h"
#include "host/publish/layout_checks.h"
#include "host/publish/locked_directory.h"
#include "host/publish/pack_stage.h"
#include "host/publish/planner.h"
#include "host/publish/samples.h"
#include "host/publish/shard_plan.h"
#include "host/publish/shard_stage.h"
#include "src/base/errors.h"
#include "src/base/hex.h"
#include "src/system/file.h"

namespace blindfuse {

namespace {

namespace fs = std::filesystem;

// The epoch from which a build starts.
struct PreviousEpoch {
  Manifest manifest;
  EpochId epoch;
  std::optional<ManifestSignature> signature;
  EpochTable table;
};

class Stopwatch {
 public:
  // Returns the seconds since the last call, or since the start.
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    return std::chrono::duration<double>(now - std::exchange(last_, now)).count();
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

// True if a text that is not a manifest was one before it was damaged.
bool was_manifest(std::string_view text) {
  // serialize_manifest() begins like this, or has a member that no other program writes.
  return text.starts_with("{\n  \"arity\": ") || text.find("\"blindfuse/") != text.npos;
}

// A build must not drop a signature by accident, as when its operator knows of no key.
void check_signing(const LockedDirectory& locked, const BuildOptions& options,
                   const std::string& signer) {
  if (options.signing_key != nullptr || options.drop_signature) return;
  throw InputError(locked.get().root().string() + " is signed" +
                   (signer.empty() ? "" : " by " + signer) +
                   "; sign the new epoch, too (--sign FILE), or drop the signature (--unsigned)");
}

std::optional<PreviousEpoch> read_previous(LockedDirectory& locked, const BuildOptions& options) {
  if (!locked.has_manifest()) return std::nullopt;
  const DatabaseDirectory& directory = locked.get();
  std::optional<PreviousEpoch> previous;
  const std::string text = directory.read_manifest_text();
  try {
    const ParsedManifest parsed = parse_manifest(text);
    previous = {parsed.manifest, parsed.epoch, {}, {}};
    if (is_rightly_signed(parsed)) previous->signature = parsed.signature;
    locked.start_from(parsed.manifest, {}, parsed.signature);
    previous->table =
        parse_epoch_table(directory.read_table(parsed.manifest), parsed.manifest.layout);
    locked.start_from(parsed.manifest, previous->table, parsed.signature);
    check_signature(parsed);
  } catch (const NewerFormatError& error) {
    if (!options.fresh) directory.fail_newer(error);
  } catch (const InputError& error) {
    if (!was_manifest(text)) {
      throw InputError(directory.manifest_file().string() + " is not that of a database: " +
                       error.what() + "; move it away, and choose a new or an empty directory");
    }
    // A build with --fresh uses nothing of the old epoch except its id, so that it need not be
    // whole.
    if (!options.fresh) {
      throw InputError(directory.root().string() +
                       " holds a database that this program cannot read: " + error.what() +
                       "; build with --fresh to replace it");
    }
  } catch (const ResourceError&) {
    if (!options.fresh) throw;
  }
  if (previous && previous->signature) {
    check_signing(locked, options, encode_hex(previous->signature->signer));
  } else if (text.find("\"signature\"") != text.npos) {
    check_signing(locked, options, "");
  }
  return previous;
}

// Runs one build, stage by stage.
class Build {
 public:
  Build(LockedDirectory& locked, const BuildOptions& options, const EngineMaker& engines)
      : locked_(locked),
        directory_(locked.get()),
        options_(options),
        engines_(engines),
        previous_(read_previous(locked, options)),
        threads_(options.thread_count) {
    locked.clear_leftovers();
    if (previous_ && !options.fresh) {
      manifest_.salt = previous_->manifest.salt;
      manifest_.seed = previous_->manifest.seed;
    } else {
      options.random(manifest_.salt);
      options.random(manifest_.seed);
    }
  }

  BuildReport run(const std::vector<std::unique_ptr<KeyValueSource>>& sources) {
    Stopwatch total;
    Stopwatch stage;
    input_ =
        read_input(sources, manifest_.salt, options_.input, new_spool(options_.input.on_duplicate));
    report_.seconds_reading = stage.lap();
    report_.survey = survey_input(input_, options_.input.on_duplicate, threads_);
    report_.input_bytes = input_.bytes;
    if (previous_) report_.keys_before = previous_->manifest.layout.key_count;
    if (previous_ && !options_.fresh) {
      check_replacement(previous_->manifest.layout, options_, report_.survey, directory_.root());
    }
    check_values(options_.input.kind, report_.survey);
    const std::vector<Sample> samples = take_samples(input_, options_.input.kind, manifest_.salt);
    choose_layout();
    order_by_shard();
    report_.seconds_surveying = stage.lap();
    report_.layout = manifest_.layout;
    report_.truncated_values = input_.truncated_values;
    if (options_.on_planned) options_.on_planned(report_);
    make_folders();
    const EpochTable reusable = report_.layout_kept ? previous_->table : EpochTable{};
    ShardStageResult shards =
        build_shards(directory_, locked_.writer(), manifest_.layout, *input_.spool, reusable.shards,
                     options_.random, threads_);
    input_.spool.reset();
    report_.shards_rebuilt = static_cast<uint32_t>(shards.rebuilt.size());
    report_.seconds_filters = stage.lap();
    const EpochTable table = finish_table(std::move(shards), reusable);
    report_.seconds_hint = stage.lap();
    publish(table, samples);
    report_.seconds_total = total.lap();
    return report_;
  }

 private:
  void choose_layout() {
    if (previous_ && !options_.fresh) {
      auto reason = why_not_kept(previous_->manifest.layout, options_, report_.survey);
      if (!reason) reason = keep_previous_layout();
      if (!reason) return;
      report_.layout_reason = "chosen again, because " + *reason;
    }
    const bool updates = previous_ && !options_.fresh;
    PlanRequest request =
        plan_request(options_, report_.survey, updates ? &previous_->manifest.layout : nullptr);
    const Plan planned = cheapest(plan_modes(request));
    request.lwe = planned.layout.lwe;
    request.levels = planned.layout.levels();
    request.short_key = kind_of(planned.layout).short_key;
    const uint64_t fullest = fullest_shard(*input_.spool, planned.layout, threads_);
    report_.fullest_shard = fullest;
    // The planner estimated the fullest shard, which is known by now.
    const auto plan = plan_shards(request, planned.layout.shard_count, fullest);
    if (!plan) {
      throw InputError("the fullest of " + std::to_string(planned.layout.shard_count) +
                       " shards has " + std::to_string(fullest) +
                       (planned.layout.batch ? " records" : " keys") +
                       ", too many for the chosen bits; allow more bits or more shards, or "
                       "distribute the keys again with --fresh, which picks a new salt");
    }
    manifest_.layout = plan->layout;
    check_layout(manifest_.layout);
    check_padding(manifest_.layout, options_, report_.survey, input_.bytes);
    if (report_.layout_reason.empty()) report_.layout_reason = "chosen for this input";
  }

  // Takes the previous layout if its shards are still large enough; otherwise returns the reason.
  std::optional<std::string> keep_previous_layout() {
    Layout layout = previous_->manifest.layout;
    layout.key_count = report_.survey.key_count;
    const uint64_t fullest = fullest_shard(*input_.spool, layout, threads_);
    report_.fullest_shard = fullest;
    if (auto reason = why_shards_do_not_fit(layout, fullest)) return reason;
    manifest_.layout = layout;
    report_.layout_kept = true;
    report_.layout_reason = "kept from the previous epoch";
    return std::nullopt;
  }

  // Puts the entries in the order of the shards, where it is not that of the keys' hashes.
  void order_by_shard() {
    const Layout& layout = manifest_.layout;
    std::unique_ptr<Spool>& spool = input_.spool;
    if (layout.kind == DatabaseKind::kIndex) {
      spool =
          spool_by_shard(*spool, layout.shard_count, new_spool(DuplicatePolicy::kNone), threads_);
    } else if (layout.batch) {
      spool = spool_by_bucket(*spool, layout.shard_count, layout.bucket_count(),
                              new_spool(DuplicatePolicy::kNone), threads_);
    }
  }

  void make_folders() {
    DatabaseWriter& writer = locked_.writer();
    for (const DatabaseFolder& folder :
         {kTablesFolder, kShardsFolder, kHintsFolder, kSamplesFolder}) {
      writer.make_folder(folder);
    }
    if (manifest_.layout.mode() == Mode::kPacked) writer.make_folder(kPacksFolder);
  }

  // Runs the stage that the mode needs in addition to filters and matrices.
  EpochTable finish_table(ShardStageResult shards, const EpochTable& reusable) {
    if (manifest_.layout.mode() == Mode::kHint) {
      build_hints(directory_, locked_.writer(), manifest_.layout, manifest_.seed, shards.rebuilt,
                  engines_, threads_, shards.table);
      return {std::move(shards.table), {}};
    }
    PackStageResult packs = build_packs(directory_, locked_.writer(), manifest_.layout,
                                        manifest_.seed, shards.table, reusable, engines_, threads_);
    report_.packs_rebuilt = packs.rebuilt;
    return {std::move(shards.table), std::move(packs.packs)};
  }

  void publish(const EpochTable& table, const std::vector<Sample>& samples) {
    const std::vector<uint8_t> table_bytes = serialize_epoch_table(table);
    manifest_.table = sha256(table_bytes);
    const std::string samples_text = serialize_samples(samples);
    manifest_.samples = sha256(
        std::span(reinterpret_cast<const uint8_t*>(samples_text.data()), samples_text.size()));
    report_.epoch = epoch_id(manifest_);
    report_.changed = !previous_ || previous_->epoch != report_.epoch;
    write_whole(kTablesFolder, table_bytes, manifest_.table);
    write_whole(
        kSamplesFolder,
        std::span(reinterpret_cast<const uint8_t*>(samples_text.data()), samples_text.size()),
        manifest_.samples);
    sign();
    // A damaged shard may have been written again at least.
    locked_.publish(manifest_, table, report_.signature);
    report_.unclaimed_files = locked_.unclaimed_files();
  }

  // A manifest that neither changes nor gets another signer keeps its number: it is not published
  // again.
  void sign() {
    const auto before = previous_ ? previous_->signature : std::nullopt;
    if (options_.signing_key == nullptr) {
      report_.signature_changed = before.has_value();
      return;
    }
    if (before && !report_.changed && before->signer == options_.signing_key->public_key()) {
      report_.signature = before;
      return;
    }
    const uint64_t now = options_.clock();
    // A new directory continues above what clients have seen of the one before.
    const uint64_t sequence = std::max(before ? before->sequence + 1 : 1, now);
    if (sequence > kManifestIntegerMax) {
      throw InputError(
          directory_.root().string() + " has the last number that a manifest can have (" +
          std::to_string(kManifestIntegerMax) + "); make a new key and a new directory");
    }
    report_.signature = options_.signing_key->sign(manifest_, sequence, now);
    report_.signature_changed = true;
  }

  void write_whole(const DatabaseFolder& folder, std::span<const uint8_t> bytes,
                   const Sha256Digest& content) {
    NewFile file = locked_.writer().create(folder);
    file.write(bytes);
    file.sync();
    file.commit(content);
  }

  std::unique_ptr<Spool> new_spool(DuplicatePolicy policy) {
    return std::make_unique<Spool>(locked_.writer().create_unnamed(), directory_.root(), policy);
  }

  LockedDirectory& locked_;
  const DatabaseDirectory& directory_;
  const BuildOptions& options_;
  const EngineMaker& engines_;
  const std::optional<PreviousEpoch> previous_;
  WorkerThreads threads_;
  Manifest manifest_;
  Input input_;
  BuildReport report_;
};

}  // namespace

uint64_t unix_seconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::seconds>(now).count());
}

BuildReport build_database(const std::vector<std::unique_ptr<KeyValueSource>>& sources,
                           const fs::path& root, const BuildOptions& options) {
  invariant(!sources.empty(), "a build has a source");
  std::unique_ptr<EngineMaker> named;
  if (options.engines == nullptr) named = make_engine_maker(options.engine, options.thread_count);
  LockedDirectory locked(root);
  return Build(locked, options, named ? *named : *options.engines).run(sources);
}

namespace {

std::unique_ptr<Spool> temporary_spool(DuplicatePolicy policy) {
  std::error_code error;
  const fs::path folder = fs::temp_directory_path(error);
  if (error) {
    throw InputError("there is no folder for temporary files; set TMPDIR to one (" +
                     error.message() + ")");
  }
  fs::path name;
  // All users may have files in this folder, and another one could open it before it loses its
  // name.
  FileDescriptor file = create_temporary_file(folder, name, 0600);
  unlink(name.c_str());
  return std::make_unique<Spool>(std::move(file), folder, policy);
}

std::optional<Manifest> manifest_of(const fs::path& root) {
  const DatabaseDirectory directory(root);
  if (!directory.has_manifest()) return std::nullopt;
  try {
    return directory.read_manifest().manifest;
  } catch (const NewerFormatError&) {
    throw;
  } catch (const InputError& fault) {
    throw InputError(std::string(fault.what()) + "; --fresh plans without the existing database");
  }
}

}  // namespace

DryRun dry_run(const std::vector<std::unique_ptr<KeyValueSource>>& sources,
               const std::optional<fs::path>& root, const BuildOptions& options) {
  invariant(!sources.empty(), "a plan of pairs has a source");
  std::optional<Manifest> previous;
  if (root && !options.fresh) previous = manifest_of(*root);
  Salt salt;
  if (previous) {
    salt = previous->salt;
  } else {
    options.random(salt);
  }
  WorkerThreads threads(options.thread_count);
  const DuplicatePolicy policy = options.input.on_duplicate;
  const Input input = read_input(sources, salt, options.input, temporary_spool(policy));
  DryRun result;
  result.survey = survey_input(input, policy, threads);
  result.truncated_values = input.truncated_values;
  if (previous) check_replacement(previous->layout, options, result.survey, *root);
  check_values(options.input.kind, result.survey);
  result.request = plan_request(options, result.survey, previous ? &previous->layout : nullptr);
  if (!previous) return result;
  Layout layout = previous->layout;
  layout.key_count = result.survey.key_count;
  auto reason = why_not_kept(previous->layout, options, result.survey);
  if (!reason) {
    reason = why_shards_do_not_fit(layout, fullest_shard(*input.spool, layout, threads));
  }
  if (reason) {
    result.why_not_kept = *reason;
  } else {
    result.kept = layout;
  }
  return result;
}

}  // namespace blindfuse
