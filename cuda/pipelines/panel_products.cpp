#include "cuda/pipelines/panel_products.h"

#include "cuda/device/memory.h"
#include "cuda/device/stream.h"
#include "cuda/scan/scan_kernels.h"
#include "src/base/errors.h"

namespace blindfuse {
namespace {

// A range may begin and end within a step.
uint64_t pitch_for(uint64_t rows_max) { return (rows_max / kStepRows + 2) * kStepRows; }

class DevicePanelProducts final : public PanelProducts {
 public:
  DevicePanelProducts(Scanner& scanner, const DeviceMatrix& matrix, size_t count, uint64_t rows_max)
      : scanner_(scanner),
        matrix_(matrix),
        count_(static_cast<uint32_t>(count)),
        limb_pitch_(pitch_for(rows_max)),
        limbs_(limb_rows_for(count_) * limb_pitch_),
        products_(count * matrix.column_count()),
        sums_(count * matrix.column_count()) {
    for (Panel& panel : panels_) {
      panel.host = PinnedMemory<uint32_t>(count * rows_max);
      panel.device = DeviceMemory<uint32_t>(count * rows_max);
    }
    BLINDFUSE_CUDA(cudaDeviceSynchronize());  // all is cleared
  }

  std::span<uint32_t> buffer() override {
    matrix_.use_device();
    panels_[next_].sent.wait();
    return panels_[next_].host.span();
  }

  void add(QueryBatch queries, RowRange rows) override {
    matrix_.use_device();
    Panel& panel = panels_[next_];
    next_ = 1 - next_;
    invariant(queries.words == panel.host.data() && queries.count == count_,
              "the panel's words are in the buffer");
    if (rows.size() == 0 || queries.count == 0) return;
    // Words are copied up to the last one that is used.
    const uint64_t last_row = rows.size() - 1;
    const uint64_t words = (queries.count - 1) * queries.stride +
                           last_row / 64 * queries.panel_stride + last_row % 64 + 1;
    invariant(words <= panel.host.size(), "the panel's words are in the buffer");
    panel.cut.hold(copies_);
    BLINDFUSE_CUDA(cudaMemcpyAsync(panel.device.data(), panel.host.data(), words * sizeof(uint32_t),
                                   cudaMemcpyHostToDevice, copies_.get()));
    panel.sent.record(copies_);
    panel.sent.hold(products_stream_);
    const Scanner::Choice choice = scanner_.choose(count_);
    const Limbs limbs{limbs_.data(), uint64_t{Scanner::step_count(rows)} * kStepRows, choice.order};
    start_cut(PlainWords{panel.device.data(), queries.stride, queries.panel_stride, rows.size(),
                         Scanner::lead(rows)},
              count_, limbs, products_stream_.get());
    panel.cut.record(products_stream_);
    scanner_.start(choice, limbs, count_, rows, products_.data(), products_stream_.get());
  }

  std::span<const uint32_t> finish() override {
    matrix_.use_device();
    BLINDFUSE_CUDA(cudaMemcpyAsync(sums_.data(), products_.data(),
                                   products_.size() * sizeof(uint32_t), cudaMemcpyDeviceToHost,
                                   products_stream_.get()));
    products_stream_.wait();
    return sums_.span();
  }

 private:
  struct Panel {
    PinnedMemory<uint32_t> host;
    DeviceMemory<uint32_t> device;
    Event sent;  // the host may write again
    Event cut;   // the device's copy may be written again
  };

  Scanner& scanner_;
  const DeviceMatrix& matrix_;
  const uint32_t count_;
  const uint64_t limb_pitch_;
  DeviceMemory<int8_t> limbs_;
  DeviceMemory<uint32_t> products_;
  PinnedMemory<uint32_t> sums_;
  Panel panels_[2];
  unsigned next_ = 0;
  // The stream is the last member, so that its copies are done before the memory goes.
  Stream copies_;
  Stream products_stream_;
};

}  // namespace

std::unique_ptr<PanelProducts> make_device_panel_products(Scanner& scanner,
                                                          const DeviceMatrix& matrix, size_t count,
                                                          uint64_t rows_max) {
  const uint64_t limbs = limb_rows_for(static_cast<uint32_t>(count)) * pitch_for(rows_max);
  const uint64_t words = count * (2 * rows_max + matrix.column_count());
  require_room(limbs + sizeof(uint32_t) * words, "the products of the hint",
               "--engine cpu computes on the processor");
  return std::make_unique<DevicePanelProducts>(scanner, matrix, count, rows_max);
}

}  // namespace blindfuse
