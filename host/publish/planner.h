// Plans the layout of a database: the one that costs a client the fewest bytes, or a few more if
// that saves memory of the server.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "host/publish/shard_plan.h"

namespace blindfuse {

// A plan for each sensible number of shards (or for the fixed one), fewest first, for the set
// request.lwe, which must be there. Throws InputError if there is none, and if the fixed number is
// not a multiple of the number of buckets.
std::vector<Plan> plan_layouts(const PlanRequest& request);

// Packing tables of more bytes than this, and than the matrix, are made only if the operator asks
// for packed responses: they would more than double the memory of a large server.
inline constexpr uint64_t kAutoPackingBytesMax = uint64_t{256} << 20;

// The plans to choose from: the plan_layouts() of each mode, none of them empty. If the mode is
// fixed, by itself or by the set, these are all plans of that mode unless is_inherited. If both are
// open, they are the hint mode's and, after them, those of the packed mode that stay below
// kAutoPackingBytesMax or the matrix, if there are any. With requests for several keys these are
// all plans of the packed mode. Throws InputError if no plan is possible. If mode and set are both
// open, the error is the one of the hint mode.
std::vector<std::vector<Plan>> plan_modes(const PlanRequest& request);

// Layouts that are compared with each other before their kind is chosen.
struct LayoutKind {
  Mode mode = Mode::kHint;
  uint32_t levels = 1;
  bool short_key = false;
  std::optional<BatchCode> batch = std::nullopt;

  bool operator==(const LayoutKind&) const = default;
};

LayoutKind kind_of(const Layout& layout);

// The plans of this kind, with large packing tables, too. None if the request's mode or set is of
// the other mode, or if there is no layout.
std::vector<Plan> plans_of_kind(const PlanRequest& request, const LayoutKind& kind);

// The bytes that a client may move in packed mode to spare the server memory, as a multiple of the
// fewest possible: every pack takes 25 MB of memory that is read for each batch.
inline constexpr double kBytesForFewerPacks = 1.15;

// Where requests are for several keys, packing tables may take this many times the bytes of the
// matrix unless the operator asks for fewer bytes.
inline constexpr uint64_t kBatchTablesPerMatrix = 2;

// The cheapest of plans of one mode: the one with the fewest total bytes, and among equals the
// fewest shards. In the packed mode it is the one with the fewest packs of those with up to
// kBytesForFewerPacks times as many bytes. With requests for several keys it is the one with the
// fewest bytes of those whose tables take at most kBatchTablesPerMatrix matrices or
// kAutoPackingBytesMax; where all take more, the one with the fewest packs.
const Plan& cheapest(const std::vector<Plan>& plans);

// The cheapest of all. Among equals, the first mode's.
const Plan& cheapest(const std::vector<std::vector<Plan>>& modes);

}  // namespace blindfuse
