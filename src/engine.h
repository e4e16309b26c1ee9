// The one operation of the project: a batch of u32 row vectors times the byte matrix, modulo 2^32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "src/packing_table.h"
#include "src/ring/ring_dimension.h"

namespace blindfuse {

// Rows first .. last-1 of the matrix.
struct RowRange {
  uint64_t first = 0;
  uint64_t last = 0;

  uint64_t size() const { return last - first; }
};

// `count` row vectors, one word a row of the range they are multiplied with. The words come in
// panels of 64 rows: that of row r of vector b is words[b * stride + r / 64 * panel_stride + r %
// 64]. So a plain vector has the default, and the public matrix, expanded in panels, is n vectors
// as it stands.
struct QueryBatch {
  const uint32_t* words = nullptr;
  size_t count = 0;
  size_t stride = 0;
  size_t panel_stride = 64;
};

// `count` products; product b is the words at words + b * stride, one a column of the matrix.
struct ProductBatch {
  uint32_t* words = nullptr;
  size_t count = 0;
  size_t stride = 0;
};

// Products of the same vectors with one panel of rows after another, added up where the engine
// computes: the hint, whose vectors are far too long to be held (host/build/hint.h).
class PanelProducts {
 public:
  virtual ~PanelProducts() = default;

  // Where to put the next panel's words: room for count vectors of rows_max words, which is free
  // until add(). Throws EngineTrouble.
  virtual std::span<uint32_t> buffer() = 0;
  // Multiplies what is in the buffer, laid out as `queries` says (its words within the buffer),
  // with these rows. May return before that is done.
  virtual void add(QueryBatch queries, RowRange rows) = 0;
  // The sums, once all are done: count times C words, vector after vector.
  virtual std::span<const uint32_t> finish() = 0;
};

// How the words of queries and responses are rounded and bit-packed (docs/PROTOCOL.md, section 7).
struct WireBits {
  uint32_t query = 32;
  uint32_t response = 32;
};

// What packs responses, made where the engine computes, from the columns that the engine has.
class PackMaker {
 public:
  virtual ~PackMaker() = default;

  // The table and the mask (coefficients modulo the packing modulus) of columns 2048 * pack and on,
  // as of 2048 where there are fewer, all zero. The same words as PackingTableBuilder makes of
  // HintPolynomials (host/packing). Throws EngineTrouble.
  virtual void make(uint32_t pack, MutablePackingTable table, ring::MutablePolynomial mask) = 0;
};

// From bit-packed queries to such responses, for a queue of slots. Batches of neighbouring slots
// may overlap: one is computed while the next is brought to where the engine computes.
class AnswerPipeline {
 public:
  virtual ~AnswerPipeline() = default;

  static constexpr size_t kDepthMax = 2;

  // Batches that may have begun and not been finished, 1 .. kDepthMax.
  virtual size_t depth() const = 0;
  // Puts a bit-packed query of R words into a slot that no batch is using. Any thread.
  virtual void put(size_t slot, std::span<const uint8_t> query) = 0;
  // Copies a query to a slot that no batch is using. The caller of begin().
  virtual void move(size_t from, size_t to) = 0;
  // Begins with the slots first .. first + count - 1. Throws EngineTrouble; nothing has begun then.
  virtual void begin(size_t first, size_t count) = 0;
  // Ends the oldest batch: its bit-packed responses of C words, one after another, which stay until
  // the next begin(). Throws EngineTrouble; the batch has ended then, too.
  virtual std::span<const uint8_t> finish() = 0;
};

// An engine holds one matrix, in whatever layout and memory suits it; all of it zero at first.
class Engine {
 public:
  virtual ~Engine() = default;

  // Names the engine and the kernel it chose, as --engine takes it: "cpu:avx512".
  virtual std::string_view name() const = 0;
  // What it runs on, for people: "4 threads".
  virtual std::string hardware() const = 0;

  virtual uint64_t row_count() const = 0;     // R
  virtual uint64_t column_count() const = 0;  // C

  // Sets the columns from `first` on to `bytes`, a whole number of columns of R signed bytes, one
  // after another. Different columns by any number of threads at the same time; not while a product
  // is computed. Throws EngineTrouble.
  virtual void set_columns(uint64_t first, std::span<const uint8_t> bytes) = 0;

  // Instead of setting `count` columns from `first` on: takes them from another engine, which is
  // sealed and whose matrix has as many rows and columns and is the same there. What can be shared
  // is not copied. The other may compute meanwhile, and may be destroyed later, or this one before
  // it. False, with nothing done, when columns cannot be had that way, and set_columns() has to be
  // used. Threads as for set_columns(). Throws EngineTrouble.
  //
  // Best called before set_columns(), which may insist that memory holds all that is missing.
  virtual bool share_columns(uint64_t first, uint64_t count, const Engine& other) = 0;

  // Called after the last set_columns() and share_columns(), and before the first product. Throws
  // EngineTrouble when memory is short, or when what has arrived where the engine computes is not
  // what was set.
  virtual void seal() = 0;

  // products[b][c] += sum over r in rows of queries[b][r - rows.first] * int8(matrix[r][c]), modulo
  // 2^32.
  //
  // Adding, over a range of rows, lets the hint be made panel by panel and a matrix be split by
  // rows over machines. queries.count == products.count; any alignment; rows within the matrix. One
  // caller at a time. Throws EngineTrouble when the machine fails; products are then worthless.
  virtual void multiply(QueryBatch queries, RowRange rows, ProductBatch products) = 0;

  // For engines whose memory is not the host's: what saves them moving words back and forth. None
  // (nullptr) where multiply() does as well.
  virtual std::unique_ptr<PanelProducts> make_panel_products(size_t count, uint64_t rows_max) = 0;
  virtual std::unique_ptr<AnswerPipeline> make_answer_pipeline(WireBits bits, size_t slot_count,
                                                               size_t batch_max) = 0;

  // The same for responses that are packed under clients' secrets. tables: one for every 2048
  // columns, and for what is left; a query is its bit-packed words and, behind them, packing keys
  // (ring::kKeyBytes) that check_packing_keys does not refuse. None where the host does as well.
  // Throws EngineTrouble.
  virtual std::unique_ptr<AnswerPipeline> make_packed_answer_pipeline(
      [[maybe_unused]] WireBits bits, [[maybe_unused]] std::span<const SharedPackingTable> tables,
      [[maybe_unused]] size_t slot_count, [[maybe_unused]] size_t batch_max) {
    return nullptr;
  }
  // blocks: the R words of the public polynomials of all blocks of rows; key_masks: kDimension
  // values for each digit of each key (src/ring/public_polynomials.h). R is a multiple of
  // kDimension. None where the host does as well. Throws EngineTrouble.
  virtual std::unique_ptr<PackMaker> make_pack_maker(
      [[maybe_unused]] std::span<const uint32_t> blocks,
      [[maybe_unused]] std::span<const uint32_t> key_masks) {
    return nullptr;
  }
};

}  // namespace blindfuse
