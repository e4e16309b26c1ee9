// Makes engines of one kind, also before there is a matrix.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "src/arithmetic/packing_table.h"
#include "src/arithmetic/ring/ring_dimension.h"
#include "src/arithmetic/second_level_spec.h"
#include "src/engine/engine.h"

namespace blindfuse {

// Makes packing tables and masks of a matrix's columns: takes the columns of some packs, and makes
// the packs of them. It is not an engine and answers nothing, so it keeps only the data that packs
// are made of.
class PackMaker {
 public:
  virtual ~PackMaker() = default;

  // Sets the columns from `first` on to `bytes`, a whole number of columns of R signed bytes, one
  // after another, all of them columns of the bucket with the `bucket`-th public polynomials. Each
  // column is set at most once; a column that is not set is zero. Any number of threads may set
  // different columns at the same time. Throws ResourceError.
  virtual void set_columns(uint64_t first, std::span<const uint8_t> bytes, size_t bucket = 0) = 0;

  // Called once, after the last set_columns() and before the first make(). Throws ResourceError if
  // memory is short, or if the columns that arrived where the maker computes differ from those that
  // were set.
  virtual void seal() = 0;

  // Makes the table and the mask (coefficients modulo the packing modulus) of the columns from 1024
  // * pack on. If there are fewer than 1024, the missing ones count as zero. The words are those
  // that PackingTableBuilder makes of HintPolynomials (host/cpu/packing), for every maker. Any
  // number of threads may make different packs at the same time. Throws ResourceError.
  virtual void make(uint32_t pack, MutablePackingTable table, ring::MutablePolynomial mask) = 0;
};

// The needs of an engine that serves, for which it takes memory in addition to its matrix. Some
// memory is for serving (answer pipelines, with their packing tables and their canary). Some is for
// the time before, and is then released (Engine::check_kernels).
struct ServingNeeds {
  size_t batch_max = 32;  // queries in a batch, also of check_kernels()
  size_t pack_count = 0;  // packing tables; 0 where responses are not packed
  // The second level of packed responses, if they have one. Its polynomials do not matter.
  std::optional<SecondLevelSpec> second = {};
  size_t bucket_count = 1;  // of packed responses (Engine::make_packed_answer_pipeline)
};

// Makes engines and pack makers that compute in one place, with one kernel. Any thread. Its
// products do not depend on its lifetime, and are never null.
class EngineMaker {
 public:
  virtual ~EngineMaker() = default;

  // An engine for a matrix of this many rows and columns. Throws ResourceError if the engine takes
  // the matrix's memory now (Engine::host_bytes) and does not get it.
  virtual std::unique_ptr<Engine> make_engine(uint64_t row_count, uint64_t column_count) const = 0;

  // Makes an engine that serves. Throws ResourceError before anything is loaded if memory holds the
  // matrix, but not the engine's other needs as well. A maker that hands out another maker's
  // engines passes this call on to it.
  virtual std::unique_ptr<Engine> make_serving_engine(uint64_t row_count, uint64_t column_count,
                                                      const ServingNeeds&) const {
    return make_engine(row_count, column_count);
  }

  // True if its engines compute on a device whose results the host checks.
  virtual bool computes_on_device() const { return false; }

  // The number of packs of R rows, at least 1, that are best made by one pack maker, for a caller
  // that has this many threads to set columns and to make packs. It bounds the memory of the packs,
  // too: on the CPU 50 MB a pack (8.4 MB of polynomials, the rest while the pack is made), and on
  // a device its columns and some 34 MB.
  virtual size_t packs_at_once(uint64_t row_count, unsigned thread_count) const = 0;

  // A pack maker for packs of column_count columns of row_count (R) rows. blocks: the R words of
  // the public polynomials of all blocks of rows, for each of some buckets, one bucket after
  // another. PackMaker::set_columns names the bucket of columns by its place among them. key_masks:
  // kDimension values for each digit of the packing key (src/protocol/public_polynomials.h). Both
  // outlive the pack maker. R is a multiple of kDimension. Throws ResourceError if there is no room
  // for the columns.
  virtual std::unique_ptr<PackMaker> make_pack_maker(std::span<const uint32_t> blocks,
                                                     std::span<const uint32_t> key_masks,
                                                     uint64_t row_count,
                                                     uint64_t column_count) const = 0;
};

// The largest number of packs that any maker is asked for at a time.
inline constexpr size_t kPacksAtOnceMax = 16;

}  // namespace blindfuse
