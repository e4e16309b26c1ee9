// One kind of engine, before there is a matrix.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "src/engine/engine.h"
#include "src/engine/kernel_record.h"
#include "src/engine/pack_maker.h"

namespace blindfuse {

// What an engine that serves is going to take memory for in addition to its matrix: what it needs
// while it serves (answer pipelines, with their packing tables and their canary), and what it needs
// before that and gives back (Engine::check_kernels).
struct ServingNeeds {
  size_t batch_max = 32;  // queries in a batch, also of check_kernels()
  size_t pack_count = 0;  // packing tables; 0 where responses are not packed
};

// Makes engines and pack makers that compute in one place, with one kernel. Any thread; what it
// makes does not need it any more, and is never null.
class EngineMaker {
 public:
  virtual ~EngineMaker() = default;

  // An engine for a matrix of this many rows and columns. Throws ResourceError when the engine
  // takes the matrix's memory now (Engine::host_bytes) and does not get it.
  virtual std::unique_ptr<Engine> make_engine(uint64_t row_count, uint64_t column_count) const = 0;

  // The same for an engine that serves: where memory holds the matrix, and not with it what else
  // the engine needs, that is said now, before anything is loaded. Throws ResourceError. A maker
  // that hands out another one's engines hands this on to it.
  virtual std::unique_ptr<Engine> make_serving_engine(uint64_t row_count, uint64_t column_count,
                                                      const ServingNeeds&) const {
    return make_engine(row_count, column_count);
  }

  // What is known of the kernels of the device that it makes engines on; null where they are not
  // checked.
  virtual std::shared_ptr<KernelRecord> kernel_record() const { return nullptr; }

  // How many packs of R rows are best made by one pack maker, for a caller that has this many
  // threads to set columns and to make packs: at least 1. What a pack takes is bounded by this,
  // too: on the CPU, 84 MB a pack (16.8 MB of polynomials, the rest while the pack is made), and on
  // a device its columns and some 67 MB.
  virtual size_t packs_at_once(uint64_t row_count, unsigned thread_count) const = 0;

  // For packs of column_count columns. blocks: the R words of the public polynomials of all blocks
  // of rows; key_masks: kDimension values for each digit of each key
  // (src/protocol/public_polynomials.h); both outlive the pack maker. R is a multiple of
  // kDimension. Throws ResourceError when there is no room for the columns.
  virtual std::unique_ptr<PackMaker> make_pack_maker(std::span<const uint32_t> blocks,
                                                     std::span<const uint32_t> key_masks,
                                                     uint64_t column_count) const = 0;
};

// Packs that any maker is asked for at a time, at most.
inline constexpr size_t kPacksAtOnceMax = 16;

}  // namespace blindfuse
