#include "host/cpu/cpu_engine.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "host/cpu/pipelines/answer_pipeline.h"
#include "host/cpu/pipelines/pack_maker.h"
#include "host/cpu/pipelines/packed_answer_pipeline.h"
#include "host/cpu/pipelines/second_level_pipeline.h"
#include "host/cpu/scan/multiply_kernel.h"
#include "host/cpu/scan/query_limbs.h"
#include "host/system/memory.h"
#include "host/system/worker_threads.h"
#include "src/base/errors.h"

namespace blindfuse {

namespace {

class CpuEngineMaker final : public EngineMaker {
 public:
  CpuEngineMaker(const MultiplyKernel& kernel, unsigned thread_count)
      : kernel_(kernel), thread_count_(thread_count) {}

  std::unique_ptr<Engine> make_engine(uint64_t row_count, uint64_t column_count) const override {
    return make_cpu_engine(kernel_, std::make_shared<Matrix>(row_count, column_count),
                           thread_count_);
  }

  // Each of the caller's threads makes one.
  size_t packs_at_once(uint64_t, unsigned thread_count) const override {
    return std::clamp<size_t>(thread_count, 1, kPacksAtOnceMax);
  }

  std::unique_ptr<PackMaker> make_pack_maker(std::span<const uint32_t> blocks,
                                             std::span<const uint32_t> key_masks,
                                             uint64_t row_count,
                                             uint64_t column_count) const override {
    return make_cpu_pack_maker(blocks, key_masks, row_count, column_count);
  }

 private:
  const MultiplyKernel& kernel_;
  const unsigned thread_count_;
};

}  // namespace

std::vector<std::string_view> cpu_kernel_names() {
  std::vector<std::string_view> names;
  for (const MultiplyKernel* kernel : usable_kernels()) names.push_back(kernel->name);
  return names;
}

std::unique_ptr<EngineMaker> make_cpu_engine_maker(std::string_view kernel, unsigned thread_count) {
  return std::make_unique<CpuEngineMaker>(choose_kernel(kernel), thread_count);
}

namespace {

static_assert(PanelProducts::kRowsAtOnce == Matrix::kBlockRows);

// Whole tiles of up to this many columns are multiplied together where a range of columns begins or
// ends within one of them. Kernels are slow with fewer (is_narrow() in multiply_amx.cpp).
constexpr uint64_t kEdgeColumns = 16 * kTileColumns;

class CpuEngine final : public Engine {
 public:
  CpuEngine(const MultiplyKernel& kernel, std::shared_ptr<Matrix> matrix, unsigned thread_count)
      : kernel_(kernel),
        name_("cpu:" + std::string(kernel.name)),
        shared_matrix_(std::move(matrix)),
        matrix_(*shared_matrix_),
        threads_(thread_count) {
    for (unsigned i = 0; i < threads_.count(); ++i) {
      limbs_.emplace_back(kernel);
      edge_products_.emplace_back(kernel.queries_at_once * kEdgeColumns);
    }
  }

  std::string_view name() const override { return name_; }
  std::string hardware() const override {
    return std::to_string(threads_.count()) + (threads_.count() == 1 ? " thread" : " threads");
  }
  uint64_t row_count() const override { return matrix_.row_count(); }
  uint64_t column_count() const override { return matrix_.column_count(); }

  uint64_t host_bytes(std::span<const ColumnRange> shared, const Engine* other) const override {
    const auto* cpu = dynamic_cast<const CpuEngine*>(other);
    return matrix_.bytes_to_take(shared, cpu == nullptr ? nullptr : &cpu->matrix_);
  }
  void set_columns(uint64_t first, std::span<const uint8_t> bytes) override {
    shared_matrix_->set_columns(first, bytes);
  }
  bool share_columns(uint64_t first, uint64_t count, const Engine& other) override {
    const auto* cpu = dynamic_cast<const CpuEngine*>(&other);
    return cpu != nullptr && shared_matrix_->share_columns(first, count, cpu->matrix_);
  }
  void seal() override { shared_matrix_->take_memory(); }

  void multiply_columns(QueryBatch queries, RowRange rows, ColumnRange columns,
                        ProductBatch products) override {
    invariant(rows.first <= rows.last && rows.last <= matrix_.row_count(), "rows of the matrix");
    invariant(columns.first <= matrix_.column_count() &&
                  columns.count <= matrix_.column_count() - columns.first,
              "columns of the matrix");
    invariant(queries.count == products.count, "a product for every query");
    switch (choose_cut(rows.size(), columns.count, queries.count)) {
      case Cut::kRows:
        return multiply_by_rows(queries, rows, columns, products);
      case Cut::kColumns:
        return multiply_by_columns(queries, rows, columns, products);
      case Cut::kQueries:
        return multiply_by_queries(queries, rows, columns, products);
    }
  }

  // Many buckets are shared out among the threads, so that no two cut the same words.
  void multiply_buckets(QueryBatch queries, size_t bucket_count, ProductBatch products) override {
    invariant(bucket_count > 0 && matrix_.column_count() % bucket_count == 0,
              "buckets have the same number of columns");
    invariant(queries.count == products.count, "a product for every query");
    constexpr size_t kBucketsAThread = 4;
    if (bucket_count < kBucketsAThread * threads_.count()) {
      return Engine::multiply_buckets(queries, bucket_count, products);
    }
    const RowRange rows{0, matrix_.row_count()};
    const uint64_t columns = matrix_.column_count() / bucket_count;
    threads_.run_each(bucket_count, [&](unsigned index, size_t bucket) {
      QueryBatch some = queries;
      some.words += bucket * rows.last;
      ProductBatch sums = products;
      sums.words += bucket * columns;
      multiply_part(index, some, rows, rows, {bucket * columns, (bucket + 1) * columns}, sums);
    });
  }

  std::unique_ptr<PanelProducts> make_panel_products(size_t count, uint64_t rows_max) override {
    return make_cpu_panel_products(*this, count, rows_max);
  }
  std::unique_ptr<AnswerPipeline> make_answer_pipeline(WireBits bits, size_t slot_count,
                                                       size_t batch_max) override {
    return make_cpu_answer_pipeline(*this, bits, slot_count, batch_max);
  }
  std::unique_ptr<AnswerPipeline> make_packed_answer_pipeline(
      WireBits bits, std::span<const SharedPackingTable> tables, size_t slot_count,
      size_t batch_max, const SecondLevelSpec* second, size_t bucket_count) override {
    invariant(second == nullptr || bucket_count == 1, "buckets have one level");
    auto first = make_cpu_packed_answer_pipeline(*this, bits, tables, slot_count, batch_max,
                                                 threads_, bucket_count);
    if (second == nullptr) return first;
    return make_second_level_pipeline(std::move(first), *second, column_count(), slot_count,
                                      threads_.count());
  }

 private:
  // The threads share out one of these dimensions.
  enum class Cut { kRows, kColumns, kQueries };

  // Threads over rows each read one run of memory and cut their part of the queries, but have
  // products to add up; it takes some blocks for each to be worth it. Threads over columns each
  // cut all queries, and over queries each read all of these columns.
  Cut choose_cut(uint64_t rows, uint64_t columns, uint64_t queries) const {
    const uint64_t threads = threads_.count();
    if (rows >= 2 * threads * Matrix::kBlockRows && 4 * rows > columns) return Cut::kRows;
    if (columns >= kTileColumns * threads) return Cut::kColumns;
    return queries >= threads ? Cut::kQueries : Cut::kRows;
  }

  // Threads meet between tiles.
  void multiply_by_columns(QueryBatch queries, RowRange rows, ColumnRange columns,
                           ProductBatch products) {
    const uint64_t last = columns.first + columns.count;
    const uint64_t first_tile = tile_of(columns.first);
    threads_.run([&](unsigned index) {
      const Share share = share_of(last - first_tile, kTileColumns, index, threads_.count());
      if (share.first == share.last) return;
      const uint64_t first = std::max(columns.first, first_tile + share.first);
      ProductBatch some = products;
      some.words += first - columns.first;
      multiply_part(index, queries, rows, rows, {first, first_tile + share.last}, some);
    });
  }

  void multiply_by_queries(QueryBatch queries, RowRange rows, ColumnRange columns,
                           ProductBatch products) {
    threads_.run([&](unsigned index) {
      const Share share = share_of(queries.count, 1, index, threads_.count());
      QueryBatch some = queries;
      some.words += share.first * queries.stride;
      some.count = share.last - share.first;
      const ProductBatch sums{products.words + share.first * products.stride, some.count,
                              products.stride};
      multiply_part(index, some, rows, rows, {columns.first, columns.first + columns.count}, sums);
    });
  }

  void multiply_by_rows(QueryBatch queries, RowRange rows, ColumnRange range,
                        ProductBatch products) {
    const size_t columns = range.count;
    std::vector<std::vector<uint32_t>> partial(threads_.count());
    threads_.run([&](unsigned index) {
      const Share share = share_of(rows.size(), kGroupRows, index, threads_.count());
      if (share.first == share.last) return;
      // The calling thread adds to the products themselves.
      ProductBatch sums = products;
      if (index != 0) {
        partial[index] = zeroed_words("partial sums of a batch", queries.count * columns);
        sums = {partial[index].data(), queries.count, columns};
      }
      multiply_part(index, queries, rows, {rows.first + share.first, rows.first + share.last},
                    {range.first, range.first + columns}, sums);
    });
    threads_.run([&](unsigned index) {
      const Share share = share_of(queries.count, 1, index, threads_.count());
      for (const std::vector<uint32_t>& sums : partial) {
        if (sums.empty()) continue;
        for (size_t b = share.first; b < share.last; ++b) {
          uint32_t* product = products.words + b * products.stride;
          for (size_t c = 0; c < columns; ++c) product[c] += sums[b * columns + c];
        }
      }
    });
  }

  // The queries' words begin at row `all`.first, and the products' at column columns.first; only
  // `rows` and `columns` are multiplied.
  void multiply_part(unsigned index, QueryBatch queries, RowRange all, RowRange rows, Share columns,
                     ProductBatch products) {
    if (columns.first == columns.last) return;
    for (uint64_t b = 0; b < queries.count; b += kernel_.queries_at_once) {
      QueryBatch some = queries;
      some.words += b * queries.stride;
      some.count = std::min<uint64_t>(kernel_.queries_at_once, queries.count - b);
      ProductBatch sums = products;
      sums.words += b * products.stride;
      for (uint64_t row = rows.first; row < rows.last;) {
        const uint64_t block = row / Matrix::kBlockRows;
        const uint64_t end = std::min(rows.last, (block + 1) * Matrix::kBlockRows);
        const uint64_t row_in_block = row % Matrix::kBlockRows;
        limbs_[index].cut(some, {row - all.first, end - all.first}, row_in_block % kGroupRows);
        // The last row is followed by other queries, or another product.
        const uint64_t next_row = end < rows.last ? end : rows.first;
        multiply_block(index, block, row_in_block / kGroupRows, columns, sums,
                       matrix_.tile(next_row / Matrix::kBlockRows, tile_of(columns.first)));
        row = end;
      }
    }
  }

  // Multiplies one slab after the other; `next` is read after that. Where the columns begin or end
  // within a tile, some whole tiles there are multiplied apart.
  void multiply_block(unsigned index, uint64_t block, uint64_t first_group, Share columns,
                      ProductBatch products, const int8_t* next) {
    MultiplyArgs args = limbs_[index].args();
    args.tile_stride = kTileColumns * matrix_.block_rows(block);
    args.first_group = first_group;
    args.product_stride = products.stride;
    for (uint64_t column = columns.first; column < columns.last;) {
      const TileRun run = tile_run(column, columns.last);
      const uint64_t end = std::min(run.last, columns.last);
      args.tiles = matrix_.tile(block, run.first);
      args.column_count = run.last - run.first;
      args.next = end < columns.last ? matrix_.tile(block, end) : next;
      uint32_t* const words = products.words + (column - columns.first);
      if (run.is_edge) {
        multiply_edge(index, args, {column - run.first, end - run.first}, words);
      } else {
        args.products = words;
        kernel_.multiply(args);
      }
      column = end;
    }
  }

  // The whole tiles of a slab that one call of the kernel multiplies: columns `first` .. `last` -
  // 1.
  struct TileRun {
    uint64_t first;
    uint64_t last;
    bool is_edge;  // not all columns are wanted
  };

  // The run that begins with the tile of `column`, where columns up to `last` - 1 are wanted.
  TileRun tile_run(uint64_t column, uint64_t last) const {
    const uint64_t first = tile_of(column);
    const uint64_t slab_last = std::min(
        (column / matrix_.slab_columns() + 1) * matrix_.slab_columns(), matrix_.column_count());
    const uint64_t wanted_last = std::min(last, slab_last);
    const uint64_t tiles_last = std::min(tile_of(wanted_last + kTileColumns - 1), slab_last);
    if (first < column) return {first, std::min(tiles_last, first + kEdgeColumns), true};
    if (wanted_last == tiles_last) return {first, tiles_last, false};
    if (tiles_last - first <= kEdgeColumns) return {first, tiles_last, true};
    return {first, tile_of(tiles_last - kEdgeColumns + kTileColumns - 1), false};
  }

  // Adds only `columns` of the tiles of `args`, counted from the first, to the products of all
  // queries, whose words begin at `products`.
  void multiply_edge(unsigned index, MultiplyArgs args, Share columns, uint32_t* products) {
    const size_t stride = args.product_stride;
    const size_t width = args.column_count;
    std::vector<uint32_t>& sums = edge_products_[index];
    std::fill_n(sums.begin(), args.query_count * width, 0u);
    args.products = sums.data();
    args.product_stride = width;
    kernel_.multiply(args);
    for (size_t b = 0; b < args.query_count; ++b) {
      const uint32_t* from = sums.data() + b * width + columns.first;
      uint32_t* product = products + b * stride;
      for (uint64_t c = 0; c < columns.last - columns.first; ++c) product[c] += from[c];
    }
  }

  // The first column of its tile.
  static uint64_t tile_of(uint64_t column) { return column / kTileColumns * kTileColumns; }

  const MultiplyKernel& kernel_;
  const std::string name_;
  const std::shared_ptr<Matrix> shared_matrix_;
  const Matrix& matrix_;
  WorkerThreads threads_;
  // Each thread has its own queries, and products of tiles of which not all columns are wanted.
  std::vector<QueryLimbs> limbs_;
  std::vector<std::vector<uint32_t>> edge_products_;
};

}  // namespace

std::unique_ptr<Engine> make_cpu_engine(const MultiplyKernel& kernel,
                                        std::shared_ptr<Matrix> matrix, unsigned thread_count) {
  return std::make_unique<CpuEngine>(kernel, std::move(matrix), thread_count);
}

}  // namespace blindfuse
