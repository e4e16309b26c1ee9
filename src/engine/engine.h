// The operation at the centre of the project: a batch of u32 row vectors times the byte matrix,
// modulo 2^32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/arithmetic/packing_table.h"
#include "src/arithmetic/second_level_spec.h"
#include "src/base/errors.h"

namespace blindfuse {

// A canary: a query whose product and response the host has computed, too. It shows that an engine
// computes right.
struct Canary {
  std::vector<uint32_t> words;  // R, such as queries have: the lowest 32 - query_bits bits are 0
  // The query has these words for each bucket, so that the product is that of one bucket.
  size_t bucket_count = 1;
  std::vector<uint32_t> products;  // C: the words times the matrix, modulo 2^32
  // C odd words that faults cannot depend on. The products of all queries are checked with them,
  // too (Engine::check_kernels). Empty: products are not checked.
  std::vector<uint32_t> weights;
  // Queries as clients send them, and their responses. There are two, so that memory left by an
  // earlier one is not right for the next one.
  struct Exchange {
    std::vector<uint8_t> query;
    std::vector<uint8_t> response;
  };
  Exchange exchanges[2];
};

// Rows first .. last-1 of the matrix.
struct RowRange {
  uint64_t first = 0;
  uint64_t last = 0;

  uint64_t size() const { return last - first; }
};

// Columns first .. first + count - 1 of the matrix.
struct ColumnRange {
  uint64_t first = 0;
  uint64_t count = 0;
};

// `count` row vectors, with one word for each row of the range with which they are multiplied. The
// words come in panels of 64 rows: the word of row r of vector b is words[b * stride + r / 64 *
// panel_stride + r % 64]. So a plain vector has the default strides, and the public matrix,
// expanded in panels, is a batch of n vectors without being moved.
struct QueryBatch {
  const uint32_t* words = nullptr;
  size_t count = 0;
  size_t stride = 0;
  size_t panel_stride = 64;
};

// `count` products. Product b is the words at words + b * stride, one for each column of the range
// with which the queries are multiplied.
struct ProductBatch {
  uint32_t* words = nullptr;
  size_t count = 0;
  size_t stride = 0;
};

// The products that make the hint: the same vectors times one panel of rows after another, added up
// where the engine computes. The vectors are those of the hint, which are too long to be in memory
// as a whole (host/hint/hint.h).
class PanelProducts {
 public:
  virtual ~PanelProducts() = default;

  // The number of rows that suits every engine in one call of add(): a block of the CPU engine's
  // matrix, whose words stay in the last-level cache or near it.
  static constexpr uint64_t kRowsAtOnce = 3072;

  // The place for the next panel's words: room for count vectors of rows_max words, which is free
  // until add(). Throws ResourceError.
  virtual std::span<uint32_t> buffer() = 0;
  // Multiplies the words in the buffer, laid out as `queries` says (its words within the buffer),
  // with these rows. May return before the products are done.
  virtual void add(QueryBatch queries, RowRange rows) = 0;
  // Waits for all products, and returns the sums: count times C words, vector after vector.
  virtual std::span<const uint32_t> finish() = 0;
};

// The bits to which the words of queries and responses are rounded in bit sequences
// (docs/PROTOCOL.md, section 7).
struct WireBits {
  uint32_t query = 32;
  uint32_t response = 32;
};

// Computes responses from queries, both of them bit sequences, for a queue of slots. Batches of
// neighbouring slots may overlap: the engine may receive one batch while it computes another.
class AnswerPipeline {
 public:
  virtual ~AnswerPipeline() = default;

  static constexpr size_t kDepthMax = 2;

  // The number of batches that may have begun and not been finished, 1 .. kDepthMax.
  virtual size_t depth() const = 0;
  // Puts a query, in the form in which it is sent, into a slot that no batch is using. Any thread.
  virtual void put(size_t slot, std::span<const uint8_t> query) = 0;
  // Copies a query to a slot that no batch is using. Called by the caller of begin().
  virtual void move(size_t from, size_t to) = 0;
  // Begins with the slots first .. first + count - 1. Throws ResourceError; then nothing has begun.
  virtual void begin(size_t first, size_t count) = 0;
  // Ends the oldest batch. Returns its responses, bit sequences of C words or those of a second
  // level (SecondLevelSpec), one after another. They stay until the next begin(). Throws
  // ResourceError; the batch has ended then, too. Throws DeviceLostError if a check of the products
  // fails, or any other check on the same device has failed.
  virtual std::span<const uint8_t> finish() = 0;
  // Called for a response that is not the host's. Throws DeviceLostError with this text. From the
  // beginning of the call on, finish() returns no responses of any pipeline on the same device.
  [[noreturn]] virtual void lose_device(const std::string& why) { throw DeviceLostError(why); }
};

// An engine holds one matrix, in a layout of its own, and answers batches. At first the matrix is
// zero. The engine outlives the pipelines and products that it makes. These compute with the
// engine's own threads or device: one thread at a time computes with an engine and all that it
// made.
class Engine {
 public:
  virtual ~Engine() = default;

  // The name of the engine and of the kernel that it chose, as --engine takes it: "cpu:avx512".
  virtual std::string_view name() const = 0;
  // The resources that it computes with, for people: "4 threads".
  virtual std::string hardware() const = 0;

  virtual uint64_t row_count() const = 0;     // R
  virtual uint64_t column_count() const = 0;  // C

  // Bytes of the host's memory that the matrix will take if these columns are shared with `other`
  // and all others are set. The caller makes sure that the host has room for them. 0 if the matrix
  // has memory of its own, all of which it took when it was made. The ranges do not overlap. If
  // there are none, `other` may be null.
  virtual uint64_t host_bytes(std::span<const ColumnRange> shared, const Engine* other) const = 0;

  // Sets the columns from `first` on to `bytes`, a whole number of columns of R signed bytes, one
  // after another. Any number of threads may set different columns at the same time, but not while
  // a product is computed. Throws ResourceError.
  virtual void set_columns(uint64_t first, std::span<const uint8_t> bytes) = 0;

  // Takes `count` columns from `first` on from another engine, instead of setting them. The other
  // engine is sealed, and its matrix has as many rows and columns and the same values there. Memory
  // is shared where possible, not copied. The other engine may compute meanwhile, and either engine
  // may be destroyed first. Returns false, without any effect, if columns are not available that
  // way: set_columns() has to be used. Threads as for set_columns(). Throws ResourceError.
  //
  // Best called before set_columns(), which may require memory for all columns that are missing.
  virtual bool share_columns(uint64_t first, uint64_t count, const Engine& other) = 0;

  // Called after the last set_columns() and share_columns(), and before the first product. Throws
  // ResourceError if memory is short, and DeviceLostError if the columns that arrived where the
  // engine computes differ from those that were set.
  virtual void seal() = 0;

  // Called after seal() and before a pipeline is made, if EngineMaker::computes_on_device(). Times
  // the kernels. Each kernel that answers batches of up to batch_max queries multiplies odd
  // multiples of the canary's words with the matrix. If the canary has weights, pipelines check the
  // products of every query from then on. Throws DeviceLostError if any product is not the host's,
  // or if the matrix has changed since it was set. Throws ResourceError if memory is short.
  virtual void check_kernels(const Canary& /*canary*/, size_t /*batch_max*/) {}

  // products[b][c] += sum over r in rows of queries[b][r - rows.first] *
  // int8(matrix[r][columns.first + c]), modulo 2^32, for c < columns.count.
  //
  // Sums over a range of rows let the hint be made panel by panel, and a matrix be split by rows
  // over machines. Ranges of columns have queries of their own where requests are for several keys.
  // queries.count == products.count; any alignment; rows and columns within the matrix, from
  // anywhere on. One caller at a time. Throws ResourceError if the machine fails; the products are
  // then worthless.
  virtual void multiply_columns(QueryBatch queries, RowRange rows, ColumnRange columns,
                                ProductBatch products) = 0;
  // Multiplies by all columns.
  void multiply(QueryBatch queries, RowRange rows, ProductBatch products) {
    multiply_columns(queries, rows, {0, column_count()}, products);
  }

  // The product of all rows where the columns are those of several buckets, C / bucket_count for
  // each and one bucket after another. The columns of bucket i are multiplied with the words from
  // queries.words + i * R on: a query has R words for each bucket, one bucket after another. C is a
  // multiple of bucket_count. Otherwise as multiply().
  virtual void multiply_buckets(QueryBatch queries, size_t bucket_count, ProductBatch products) {
    const uint64_t rows = row_count();
    const uint64_t columns = column_count() / bucket_count;
    for (size_t bucket = 0; bucket < bucket_count; ++bucket) {
      QueryBatch some = queries;
      some.words += bucket * rows;
      ProductBatch sums = products;
      sums.words += bucket * columns;
      multiply_columns(some, {0, rows}, {bucket * columns, columns}, sums);
    }
  }

  // The objects below are made of a sealed engine, and are never null. All three functions throw
  // ResourceError if there is no room for the object.

  // Products of `count` vectors, of which add() gets at most rows_max rows at a time.
  virtual std::unique_ptr<PanelProducts> make_panel_products(size_t count, uint64_t rows_max) = 0;

  // Answers queries, bit sequences of R words, in slot_count slots, in batches of up to batch_max.
  virtual std::unique_ptr<AnswerPipeline> make_answer_pipeline(WireBits bits, size_t slot_count,
                                                               size_t batch_max) = 0;

  // Packs responses under clients' secrets. tables: one for every 1024 columns, and one for the
  // remaining columns. A query is its bit sequence and, after it, a packing key (ring::kKeyBytes)
  // that check_packing_key does not refuse.
  //
  // With a second level, a query also has what SecondLevelSpec::query_bytes() counts, after its
  // packing key, and a response is the second level's: SecondLevelSpec::response_bytes(), from
  // words of bits.response. The spec's polynomials need not outlive the call.
  //
  // With several buckets, a query has the words of each bucket, R for each and one bucket after
  // another, as one bit sequence, and then one packing key. The first C / bucket_count columns are
  // multiplied by the words of the first bucket, the next ones by those of the next. C is a
  // multiple of bucket_count. `second` is null then.
  virtual std::unique_ptr<AnswerPipeline> make_packed_answer_pipeline(
      WireBits bits, std::span<const SharedPackingTable> tables, size_t slot_count,
      size_t batch_max, const SecondLevelSpec* second = nullptr, size_t bucket_count = 1) = 0;
};

}  // namespace blindfuse
