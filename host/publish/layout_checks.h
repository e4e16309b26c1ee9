// Checks whether the layout of the previous epoch, or a new one, suits an input, and asks the
// planner for a new one.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "host/publish/database_builder.h"
#include "host/publish/planner.h"

namespace blindfuse {

// Throws InputError for an index database all of whose values are empty.
void check_values(DatabaseKind kind, const Survey& survey);

// Throws InputError if an input takes the place of an epoch that it is hardly a new version of, as
// a wrong or a truncated one: its kind is another, or it has less than half of the keys, and the
// options do not allow that. root: the database, for messages.
void check_replacement(const Layout& old, const BuildOptions& options, const Survey& survey,
                       const std::filesystem::path& root);

// Throws InputError if the room for the longest value makes a new layout much larger than the
// input, and the options do not allow that. input_bytes: of all keys and values.
void check_padding(const Layout& layout, const BuildOptions& options, const Survey& survey,
                   uint64_t input_bytes);

// The reason, in words, for which `old` cannot hold the surveyed input with these options. Nothing
// if it can. The loads of its shards are not considered.
std::optional<std::string> why_not_kept(const Layout& old, const BuildOptions& options,
                                        const Survey& survey);

// The reason for which the loads of its shards do not fit `old`. fullest_shard: the keys of the
// fullest one.
std::optional<std::string> why_shards_do_not_fit(const Layout& old, uint64_t fullest_shard);

// The request for plan_modes(). Mode and parameter set are open in it if the options leave them
// open. previous: the layout of the epoch that is brought up to date, or nullptr. Its mode and set
// stay unless the options say otherwise, since secrecy rests on them, and so do its levels and the
// keys of its requests.
PlanRequest plan_request(const BuildOptions& options, const Survey& survey,
                         const Layout* previous = nullptr);

}  // namespace blindfuse
