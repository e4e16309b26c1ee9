#include "host/publish/dry_run.h"

#include <unistd.h>

#include <algorithm>

#include "host/database/directory.h"
#include "host/publish/layout_checks.h"
#include "host/publish/survey.h"
#include "src/base/errors.h"
#include "src/system/file.h"

namespace blindfuse {
namespace {

namespace fs = std::filesystem;

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
