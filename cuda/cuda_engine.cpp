#include "cuda/cuda_engine.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "cuda/device/device_info.h"
#include "cuda/pipelines/answer_pipeline.h"
#include "cuda/pipelines/batch_sizes.h"
#include "cuda/pipelines/packed_answer_pipeline.h"
#include "cuda/pipelines/panel_products.h"
#include "cuda/scan/check_vector.h"
#include "cuda/scan/device_matrix.h"
#include "cuda/scan/scan_kernels.h"
#include "cuda/scan/scanner.h"
#include "cuda/scan/trial_memory.h"
#include "src/base/errors.h"

namespace blindfuse {
namespace {

// Queries that multiply() takes at a time.
constexpr uint64_t kQueriesAtOnce = kScanMmaQueriesMax;

// Device memory that an engine needs in addition to its matrix and to what CUDA itself takes: the
// larger one of what it takes before it serves and while it does, whatever the words of queries and
// responses are rounded to; and what products are checked with, which it takes all the time.
uint64_t serving_bytes(const std::vector<std::string>& kernels, uint64_t rows, uint64_t columns,
                       const ServingNeeds& needs, uint64_t timed_bytes_min) {
  constexpr uint32_t kBitsMax = 32;
  const SecondLevelSpec* second = needs.second ? &*needs.second : nullptr;
  const BatchShape shape = needs.pack_count == 0
                               ? hint_shape(rows, columns, kBitsMax, kBitsMax)
                               : packed_shape(rows, columns, needs.pack_count, kBitsMax, kBitsMax,
                                              second, needs.bucket_count);
  const uint64_t pipeline =
      needs.pack_count == 0
          ? BatchSizes(shape, needs.batch_max).device_bytes()
          : packed_pipeline_bytes(shape, needs.pack_count, needs.batch_max, second);
  uint64_t before = trial_bytes(rows, columns, needs.batch_max);
  if (kernels.size() != 1) before = std::max(before, timing_bytes(rows, columns, timed_bytes_min));
  return CheckVector::bytes_of(rows, columns, needs.bucket_count) + std::max(before, pipeline);
}

// Adds the memory that CUDA itself takes. Throws ResourceError when there is no room for the
// packing tables with all that.
uint64_t bytes_beside(const std::vector<std::string>& kernels, uint64_t rows, uint64_t columns,
                      const ServingNeeds& needs, uint64_t timed_bytes_min) {
  const uint64_t bytes =
      serving_bytes(kernels, rows, columns, needs, timed_bytes_min) + kCudaItselfBytes;
  if (needs.pack_count > 0) {
    require_room(DeviceMatrix::bytes_of(rows, columns) + bytes,
                 "the matrix, the packing tables and their queries",
                 "lower --batch-max, build the database in the mode hint, or serve it with "
                 "--engine cpu");
  }
  return bytes;
}

// Makes the device current, and loads the code of all kernels, so that the memory that is free
// afterwards is free for the matrix.
int prepare_device(int device) {
  use_cuda_device(device);
  load_scan_kernels();
  return device;
}

std::string engine_name(const std::vector<std::string>& kernels, int device) {
  std::string name = "cuda";
  if (kernels.size() == 1) name += ":" + kernels.front();
  if (device != 0) name += "@" + std::to_string(device);
  return name;
}

class CudaEngine final : public Engine {
 public:
  CudaEngine(const std::vector<std::string>& kernels, int device, uint64_t row_count,
             uint64_t column_count, const ServingNeeds& needs,
             std::shared_ptr<Calibrations> calibrations)
      : name_(engine_name(kernels, prepare_device(device))),
        matrix_(device, row_count, column_count,
                bytes_beside(kernels, row_count, column_count, needs, calibrations->bytes_min())),
        scanner_(matrix_, kernels, std::move(calibrations)) {}

  std::string_view name() const override { return name_; }
  std::string hardware() const override {
    return cuda_device_description(matrix_.device()) + scanner_.choice();
  }
  uint64_t row_count() const override { return matrix_.row_count(); }
  uint64_t column_count() const override { return matrix_.column_count(); }

  uint64_t host_bytes(std::span<const ColumnRange>, const Engine*) const override { return 0; }
  void set_columns(uint64_t first, std::span<const uint8_t> bytes) override {
    matrix_.set_columns(first, bytes);
  }

  bool share_columns(uint64_t first, uint64_t count, const Engine& other) override {
    const auto* cuda = dynamic_cast<const CudaEngine*>(&other);
    return cuda != nullptr && matrix_.share_columns(first, count, cuda->matrix_);
  }

  void seal() override { matrix_.check(); }

  void check_kernels(const Canary& canary, size_t batch_max) override {
    matrix_.use_device();
    scanner_.calibrate();
    scanner_.check_kernels(canary, batch_max);
  }

  void multiply_columns(QueryBatch queries, RowRange rows, ColumnRange columns,
                        ProductBatch products) override {
    invariant(rows.first <= rows.last && rows.last <= row_count(), "rows of the matrix");
    invariant(columns.first <= column_count() && columns.count <= column_count() - columns.first,
              "columns of the matrix");
    invariant(queries.count == products.count, "a product for every query");
    if (rows.size() == 0 || columns.count == 0) return;
    matrix_.use_device();
    for (uint64_t b = 0; b < queries.count; b += kQueriesAtOnce) {
      QueryBatch some = queries;
      some.words += b * queries.stride;
      some.count = std::min(kQueriesAtOnce, queries.count - b);
      multiply_some(some, rows, columns,
                    {products.words + b * products.stride, some.count, products.stride});
    }
  }

  std::unique_ptr<PanelProducts> make_panel_products(size_t count, uint64_t rows_max) override {
    matrix_.use_device();
    return make_device_panel_products(scanner_, matrix_, count, rows_max);
  }
  std::unique_ptr<AnswerPipeline> make_answer_pipeline(WireBits bits, size_t slot_count,
                                                       size_t batch_max) override {
    matrix_.use_device();
    scanner_.calibrate();
    return make_device_answer_pipeline(scanner_, matrix_, bits, slot_count, batch_max);
  }
  std::unique_ptr<AnswerPipeline> make_packed_answer_pipeline(
      WireBits bits, std::span<const SharedPackingTable> tables, size_t slot_count,
      size_t batch_max, const SecondLevelSpec* second, size_t bucket_count) override {
    matrix_.use_device();
    scanner_.calibrate();
    return make_device_packed_answer_pipeline(scanner_, matrix_, bits, tables, slot_count,
                                              batch_max, second, bucket_count);
  }

 private:
  // Copies the words to the device in whole vectors, and the products back.
  void multiply_some(QueryBatch queries, RowRange rows, ColumnRange range, ProductBatch products) {
    const auto count = static_cast<uint32_t>(queries.count);
    const uint64_t columns = range.count;
    reserve(host_words_, count * rows.size());
    reserve(words_, count * rows.size());
    reserve(host_products_, count * columns);
    reserve(products_, count * columns);
    const uint64_t limb_pitch = uint64_t{Scanner::step_count(rows)} * kStepRows;
    reserve(limbs_, limb_rows_for(count) * limb_pitch);
    const Scanner::Choice choice = scanner_.choose(count);
    const Limbs limbs{limbs_.data(), limb_pitch, choice.order};
    gather(queries, rows.size());
    const cudaStream_t stream = stream_.get();
    BLINDFUSE_CUDA(cudaMemcpyAsync(words_.data(), host_words_.data(),
                                   count * rows.size() * sizeof(uint32_t), cudaMemcpyHostToDevice,
                                   stream));
    start_cut(PlainWords{words_.data(), rows.size(), 64, rows.size(), Scanner::lead(rows)}, count,
              limbs, stream);
    BLINDFUSE_CUDA(
        cudaMemsetAsync(products_.data(), 0, count * columns * sizeof(uint32_t), stream));
    scanner_.start_columns(choice, limbs, count, rows, range, {products_.data(), columns}, stream);
    BLINDFUSE_CUDA(cudaMemcpyAsync(host_products_.data(), products_.data(),
                                   count * columns * sizeof(uint32_t), cudaMemcpyDeviceToHost,
                                   stream));
    stream_.wait();
    for (size_t b = 0; b < count; ++b) {
      const uint32_t* from = host_products_.data() + b * columns;
      uint32_t* to = products.words + b * products.stride;
      for (uint64_t c = 0; c < columns; ++c) to[c] += from[c];
    }
  }

  void gather(const QueryBatch& queries, uint64_t rows) {
    constexpr uint64_t kPanel = 64;
    for (size_t b = 0; b < queries.count; ++b) {
      const uint32_t* from = queries.words + b * queries.stride;
      uint32_t* to = host_words_.data() + b * rows;
      for (uint64_t r = 0; r < rows; r += kPanel) {
        std::copy_n(from + r / kPanel * queries.panel_stride, std::min(kPanel, rows - r), to + r);
      }
    }
  }

  template <typename Memory>
  static void reserve(Memory& memory, uint64_t count) {
    if (memory.size() >= count) return;
    memory = {};  // not both at the same time
    memory = Memory(count);
    BLINDFUSE_CUDA(cudaDeviceSynchronize());
  }

  const std::string name_;
  DeviceMatrix matrix_;
  Scanner scanner_;
  // multiply() uses these buffers. They are as large as they ever had to be.
  PinnedMemory<uint32_t> host_words_, host_products_;
  DeviceMemory<uint32_t> words_, products_;
  DeviceMemory<int8_t> limbs_;
  Stream stream_;
};

}  // namespace

std::unique_ptr<Engine> make_cuda_engine(const std::vector<std::string>& kernels, int device,
                                         uint64_t row_count, uint64_t column_count,
                                         const ServingNeeds& needs,
                                         std::shared_ptr<Calibrations> calibrations) {
  return std::make_unique<CudaEngine>(kernels, device, row_count, column_count, needs,
                                      std::move(calibrations));
}

}  // namespace blindfuse
