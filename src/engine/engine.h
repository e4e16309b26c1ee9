// The one operation of the project: a batch of u32 row vectors times the byte matrix, modulo 2^32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "src/arithmetic/packing_table.h"
#include "src/engine/answer_pipeline.h"
#include "src/engine/batches.h"
#include "src/engine/canary.h"
#include "src/engine/panel_products.h"

namespace blindfuse {

// An engine holds one matrix, in whatever layout suits it, all of it zero at first, and answers
// batches. It outlives the pipelines and products that it makes. These compute with the engine's
// own threads or device: one thread at a time computes with an engine and all that it made.
class Engine {
 public:
  virtual ~Engine() = default;

  // Names the engine and the kernel it chose, as --engine takes it: "cpu:avx512".
  virtual std::string_view name() const = 0;
  // What it runs on, for people: "4 threads".
  virtual std::string hardware() const = 0;

  virtual uint64_t row_count() const = 0;     // R
  virtual uint64_t column_count() const = 0;  // C

  // Bytes of the host's memory that the matrix will take when these columns are shared with `other`
  // and all others are set: whoever does that sees to it that the host has room. 0 where the matrix
  // has memory of its own, all of which it took when it was made. The ranges do not overlap; where
  // there are none, `other` may be null.
  virtual uint64_t host_bytes(std::span<const ColumnRange> shared, const Engine* other) const = 0;

  // Sets the columns from `first` on to `bytes`, a whole number of columns of R signed bytes, one
  // after another. Different columns by any number of threads at the same time; not while a product
  // is computed. Throws ResourceError.
  virtual void set_columns(uint64_t first, std::span<const uint8_t> bytes) = 0;

  // Instead of setting `count` columns from `first` on: takes them from another engine, which is
  // sealed and whose matrix has as many rows and columns and is the same there. What can be shared
  // is not copied. The other may compute meanwhile, and may be destroyed later, or this one before
  // it. False, with nothing done, when columns are not available that way, and set_columns() has to
  // be used. Threads as for set_columns(). Throws ResourceError.
  //
  // Best called before set_columns(), which may insist that memory holds all that is missing.
  virtual bool share_columns(uint64_t first, uint64_t count, const Engine& other) = 0;

  // Called after the last set_columns() and share_columns(), and before the first product. Throws
  // ResourceError when memory is short, or when what has arrived where the engine computes is not
  // what was set.
  virtual void seal() = 0;

  // Multiplies the words of a canary, and odd multiples of them, with the matrix: by each kernel that
  // answers batches of up to batch_max queries, and compares the products with multiples of the
  // canary's. Notes the results in the kernel record (EngineMaker::kernel_record), and times the
  // kernels that are fit. Called after seal() and before a pipeline is made. Engines without a kernel record check nothing. Throws
  // DeviceLostError when no kernel is left that may be used, or when the matrix is not what was set any
  // more; ResourceError when memory is short.
  //
  // Where the canary has weights, pipelines check the products of every query from then on: finish()
  // throws ResourceError, or DeviceLostError, where one is wrong (AnswerPipeline::set_canary says when
  // which), and the kernel record has it.
  virtual void check_kernels(const Canary& /*canary*/, size_t /*batch_max*/) {}

  // products[b][c] += sum over r in rows of queries[b][r - rows.first] * int8(matrix[r][c]), modulo
  // 2^32.
  //
  // Adding, over a range of rows, lets the hint be made panel by panel and a matrix be split by
  // rows over machines. queries.count == products.count; any alignment; rows within the matrix. One
  // caller at a time. Throws ResourceError when the machine fails; products are then worthless.
  virtual void multiply(QueryBatch queries, RowRange rows, ProductBatch products) = 0;

  // What follows is made of a sealed engine, and is never null. All throw ResourceError when there
  // is no room for it.

  // For `count` vectors, of which add() gets at most rows_max rows at a time.
  virtual std::unique_ptr<PanelProducts> make_panel_products(size_t count, uint64_t rows_max) = 0;

  // For queries, bit sequences of R words, in slot_count slots, in batches of up to batch_max.
  virtual std::unique_ptr<AnswerPipeline> make_answer_pipeline(WireBits bits, size_t slot_count,
                                                               size_t batch_max) = 0;

  // The same for responses that are packed under clients' secrets. tables: one for every 2048
  // columns, and for what is left; a query is its bit sequence and, after it, packing keys
  // (ring::kKeyBytes) that check_packing_keys does not refuse.
  virtual std::unique_ptr<AnswerPipeline> make_packed_answer_pipeline(
      WireBits bits, std::span<const SharedPackingTable> tables, size_t slot_count,
      size_t batch_max) = 0;
};

}  // namespace blindfuse
