#include "host/cpu/cpu_engine.h"

#include <algorithm>
#include <string>

#include "host/cpu/multiply_kernel.h"
#include "host/worker_threads.h"
#include "src/errors.h"

namespace blindfuse {
namespace {

// A block's query words stay in the second-level cache while every column passes over them, and its
// few columns in the first.
constexpr uint64_t kQueryTile = 64;
constexpr uint64_t kQueryTileWords = 128 * 1024;
constexpr uint64_t kRowBlockMin = 2048;
constexpr uint64_t kRowBlockMax = 16 * 1024;

class CpuEngine final : public Engine {
 public:
  CpuEngine(const MultiplyKernel& kernel, MatrixView matrix, unsigned thread_count)
      : kernel_(kernel),
        name_("cpu:" + std::string(kernel.name)),
        matrix_(matrix),
        threads_(thread_count) {}

  std::string_view name() const override { return name_; }

  void multiply(QueryBatch queries, RowRange rows, ProductBatch products) override {
    invariant(rows.first <= rows.last && rows.last <= matrix_.row_count, "rows of the matrix");
    invariant(queries.count == products.count, "a product for every query");
    // Threads over columns share nothing but the queries. A matrix of a few columns is cut by rows.
    if (matrix_.column_count >= 4 * uint64_t{threads_.count()}) {
      threads_.run([&](unsigned index) {
        multiply_part(queries, rows, rows,
                      share_of(matrix_.column_count, 4, index, threads_.count()), products);
      });
    } else {
      multiply_by_rows(queries, rows, products);
    }
  }

 private:
  void multiply_by_rows(QueryBatch queries, RowRange rows, ProductBatch products) {
    const size_t columns = matrix_.column_count;
    std::vector<std::vector<uint32_t>> partial(threads_.count());
    threads_.run([&](unsigned index) {
      const Share share = share_of(rows.size(), 64, index, threads_.count());
      partial[index].assign(queries.count * columns, 0);
      multiply_part(queries, rows, {rows.first + share.first, rows.first + share.last},
                    {0, columns}, {partial[index].data(), queries.count, columns});
    });
    for (const std::vector<uint32_t>& sums : partial) {
      for (size_t b = 0; b < queries.count; ++b) {
        uint32_t* product = products.words + b * products.stride;
        for (size_t c = 0; c < columns; ++c) product[c] += sums[b * columns + c];
      }
    }
  }

  // The queries' words begin at row `all`.first; only `rows` and `columns` are multiplied.
  void multiply_part(QueryBatch queries, RowRange all, RowRange rows, Share columns,
                     ProductBatch products) const {
    for (uint64_t b = 0; b < queries.count; b += kQueryTile) {
      const uint64_t tile = std::min<uint64_t>(kQueryTile, queries.count - b);
      const uint64_t block = std::clamp(kQueryTileWords / tile, kRowBlockMin, kRowBlockMax);
      for (uint64_t r = rows.first; r < rows.last; r += block) {
        KernelTask task{};
        task.queries = queries.words + b * queries.stride + (r - all.first);
        task.query_stride = queries.stride;
        task.query_count = tile;
        task.columns = matrix_.column(columns.first) + r;
        task.column_stride = matrix_.column_stride;
        task.column_count = columns.last - columns.first;
        task.rows = std::min(block, rows.last - r);
        task.products = products.words + b * products.stride + columns.first;
        task.product_stride = products.stride;
        kernel_.multiply(task);
      }
    }
  }

  const MultiplyKernel& kernel_;
  const std::string name_;
  const MatrixView matrix_;
  WorkerThreads threads_;
};

}  // namespace

std::vector<std::string_view> cpu_kernel_names() {
  std::vector<std::string_view> names;
  for (const MultiplyKernel& kernel : multiply_kernels()) {
    if (kernel.runs_here()) names.push_back(kernel.name);
  }
  return names;
}

std::unique_ptr<Engine> make_cpu_engine(std::string_view name, MatrixView matrix,
                                        unsigned thread_count) {
  std::string known;
  for (const MultiplyKernel& kernel : multiply_kernels()) {
    if (!kernel.runs_here()) continue;
    if (name.empty() || name == kernel.name) {
      return std::make_unique<CpuEngine>(kernel, matrix, thread_count);
    }
    known += (known.empty() ? "" : ", ") + std::string(kernel.name);
  }
  throw Misuse("there is no CPU kernel \"" + std::string(name) +
               "\" that this machine runs; it runs " + known);
}

}  // namespace blindfuse
