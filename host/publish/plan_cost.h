// What a layout costs its server: memory, time and money (docs/PARAMETERS.md, section 8).
#pragma once

#include <cstddef>
#include <cstdint>

#include "host/engines/core_rates.h"
#include "host/publish/plan_request.h"
#include "src/engine/engine_maker.h"

namespace blindfuse {

// The prices of a public cloud with which the ChalametPIR paper reckons (section 6.1): Amazon EC2
// c5.9xlarge at 1.53 US dollars an hour for 36 virtual processors, and 0.09 for a gigabyte of
// downloads. The paper takes uploads as free. Here every byte that a client transfers has the price
// of a download, because the client's network carries queries too.
inline constexpr double kDollarsAGigabyte = 0.09;
inline constexpr double kDollarsACoreHour = 0.0425;

// Queries in a full batch: the server's limit unless it is told otherwise.
inline constexpr size_t kFullBatch = ServingNeeds{}.batch_max;

// A request is a look-up, or looks up several keys: for all of them together it takes every column
// and every pack once.
struct PlanCost {
  double alone_seconds = 0;       // of one core, for a request while no other waits
  double batch_seconds = 0;       // of one core, for a request in full batches
  uint32_t keys_per_request = 1;  // of a full request
  uint64_t server_bytes = 0;      // of memory: matrix, packing tables, and hints or masks
  double dollars = 0;             // for a client in one epoch

  double alone_seconds_per_key() const { return alone_seconds / keys_per_request; }
  double batch_seconds_per_key() const { return batch_seconds / keys_per_request; }
  // Keys, in full requests.
  double lookups_per_core_second() const { return keys_per_request / batch_seconds; }
};

// lookups: those of a client in one epoch, with which the plan's bytes were added up. All rates are
// positive.
PlanCost plan_cost(const Plan& plan, const CoreRates& rates, uint64_t lookups);

}  // namespace blindfuse
