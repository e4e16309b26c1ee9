#include "host/cpu/pipelines/panel_products.h"

#include <vector>

#include "host/system/memory.h"

namespace blindfuse {
namespace {

class CpuPanelProducts final : public PanelProducts {
 public:
  CpuPanelProducts(Engine& engine, size_t count, uint64_t rows_max)
      : engine_(engine),
        count_(count),
        panels_(zeroed_words("panels of vectors", count * rows_max)),
        products_(zeroed_words("hint", count * engine.column_count())) {}

  std::span<uint32_t> buffer() override { return panels_; }
  void add(QueryBatch queries, RowRange rows) override {
    engine_.multiply(queries, rows, {products_.data(), count_, engine_.column_count()});
  }
  std::span<const uint32_t> finish() override { return products_; }

 private:
  Engine& engine_;
  const size_t count_;
  std::vector<uint32_t> panels_;
  std::vector<uint32_t> products_;
};

}  // namespace

std::unique_ptr<PanelProducts> make_cpu_panel_products(Engine& engine, size_t count,
                                                       uint64_t rows_max) {
  return std::make_unique<CpuPanelProducts>(engine, count, rows_max);
}

}  // namespace blindfuse
