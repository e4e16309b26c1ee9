// What tensor cores compute, and the fences, registers and waits that products of a warpgroup need
// (machine_state.h).
#include <algorithm>
#include <utility>

#include "tests/cuda/machine_state.h"

namespace blindfuse::emulator {
namespace {

using Row = std::array<int16_t, 32>;  // so that the compiler multiplies eight at once

int16_t byte_of(uint32_t word, uint32_t i) { return static_cast<int8_t>(word >> 8 * i); }

// 16 rows of 32: word 0 of a lane has row g, columns 4 t ...; word 1 row g + 8; words 2 and 3 the
// same rows, columns 16 + 4 t ...
template <class Words>
void gather(const Words& words, std::array<Row, 16>& rows) {
  for (uint32_t lane = 0; lane < 32; ++lane) {
    for (uint32_t i = 0; i < 16; ++i) {
      const uint32_t word = i / 4;
      rows[lane / 4 + word % 2 * 8][word / 2 * 16 + lane % 4 * 4 + i % 4] =
          byte_of(words[lane][word], i % 4);
    }
  }
}

uint32_t product(const Row& a, const Row& b) {
  int32_t sum = 0;
  for (size_t k = 0; k < a.size(); ++k) sum += a[k] * b[k];
  return static_cast<uint32_t>(sum);
}

void add_to(int32_t& sum, uint32_t value) {
  sum = static_cast<int32_t>(static_cast<uint32_t>(sum) + value);
}

}  // namespace

void WarpProduct::compute() const {
  std::array<Row, 16> rows;
  gather(a, rows);
  std::array<Row, 8> columns;  // word w of a lane has rows 16 w + 4 t ... of column g
  for (uint32_t lane = 0; lane < 32; ++lane) {
    for (uint32_t i = 0; i < 8; ++i) {
      columns[lane / 4][i / 4 * 16 + lane % 4 * 4 + i % 4] = byte_of(b[lane][i / 4], i % 4);
    }
  }
  for (uint32_t lane = 0; lane < 32; ++lane) {
    for (uint32_t i = 0; i < 4; ++i) {
      add_to(sums[lane][i], product(rows[lane / 4 + i / 2 * 8], columns[lane % 4 * 2 + i % 2]));
    }
  }
}

std::vector<uint32_t> described_rows(uint64_t descriptor, uint32_t rows, uint32_t window) {
  const auto field = [&](unsigned from, unsigned bits) {
    return static_cast<uint32_t>(descriptor >> from & ((uint64_t{1} << bits) - 1));
  };
  const uint32_t start = field(0, 14) * 16;
  const uint32_t eight_rows = field(32, 14) * 16;
  const bool is_in_first_row = (start & 0x39f) == 0;  // of eight, and at a multiple of 32 bytes
  if (field(49, 3) != 0 || field(62, 2) != 1 || start < window || !is_in_first_row) return {};
  std::vector<uint32_t> places;
  for (uint32_t row = 0; row < rows; ++row) {
    for (uint32_t piece = 0; piece < 2; ++piece) {
      const uint32_t at = start + row / 8 * eight_rows + row % 8 * 128 + piece * 16;
      // Bits 4 to 6 of the address are exclusive-or-ed with bits 7 to 9.
      places.push_back((at ^ (at >> 7 & 7) << 4) - window);
    }
  }
  return places;
}

void GroupProduct::compute(const uint8_t* shared) const {
  if (operand.empty()) return;
  const auto read = [&](const std::vector<uint32_t>& places, uint32_t number, Row& row) {
    for (uint32_t k = 0; k < 32; ++k) {
      row[k] = static_cast<int8_t>(shared[places[2 * number + k / 16] + k % 16]);
    }
  };
  std::array<Row, 16> rows;
  if (matrix.empty()) gather(a, rows);
  for (uint32_t m = 0; m < 16 && !matrix.empty(); ++m) read(matrix, warp * 16 + m, rows[m]);
  for (uint32_t n = 0; n < columns; ++n) {
    Row column;
    read(operand, n, column);
    // A lane has two neighbouring columns of every eight: of row g, then of row g + 8.
    for (uint32_t row = 0; row < 16; ++row) {
      const uint32_t lane = row % 8 * 4 + n % 8 / 2;
      add_to(sums[lane][n / 8 * 4 + row / 8 * 2 + n % 2], product(rows[row], column));
    }
  }
}

void Machine::publish() {
  if (order_) order_->fence_proxies(running_);
}

// PTX ISA, wgmma.fence: needed before the first wgmma.mma_async and whenever registers, of sums or
// of a, were written. wgmma.wait_group: before it, touching either is undefined. Reading those of a
// is let through: the next product of the same a reads them, too.
void Machine::pin(const uint8_t* begin, size_t bytes, bool are_sums) {
  const auto is_known = [&](const Registers& r) { return r.begin == begin && r.bytes == bytes; };
  if (!options_.watches || std::ranges::any_of(mine().registers, is_known)) return;
  mine().registers.push_back({begin, bytes, are_sums, true, 0});
}

void Machine::wgmma_fence() {
  for (Registers& r : mine().registers) r.were_written = false;
}

// For its warp: all lanes call it together.
void Machine::wgmma_commit() {
  if (running_ % 32 != 0) return;
  Warp& warp = warps_[running_ / 32];
  warp.committed.push_back(std::exchange(warp.products, {}));
}

void Machine::start_product(uint32_t warp) {
  const auto start_of = [&](uint32_t lane) -> const GroupStart& {
    return *static_cast<const GroupStart*>(warps_[warp].arguments[lane]);
  };
  const GroupStart& first = start_of(0);
  if (warp / 4 * 4 + 4 > warps_.size()) fail(Fault::kMisuse, "a product of less than four warps");
  GroupProduct product;
  product.columns = first.columns;
  product.warp = warp % 4;
  const auto described = [&](uint64_t descriptor, uint32_t rows) {
    auto places = described_rows(descriptor, rows, kWindowPlace);
    if (places.empty()) fail(Fault::kMisuse, "a product by a descriptor that is not emulated");
    for (const uint32_t place : places) {
      if (place + kOperandBytes > shared_bytes_) {
        fail(Fault::kForeignMemory, "a product of what lies beyond shared memory");
      }
    }
    return places;
  };
  product.operand = described(first.descriptor, first.columns);
  if (first.a == nullptr) product.matrix = described(first.a_descriptor, kGroupRows);
  // All four warps start the same products.
  auto& of_group = groups_[warp / 4].products;
  const std::array<uint64_t, 3> mark{first.columns, first.a_descriptor, first.descriptor};
  const uint64_t number = warps_[warp].products_started++;
  if (number == of_group.size()) of_group.push_back(mark);
  for (uint32_t lane = 0; lane < 32; ++lane) {
    const GroupStart& start = start_of(lane);
    if (std::array<uint64_t, 3>{start.columns, start.a_descriptor, start.descriptor} !=
        of_group[number]) {
      fail(Fault::kMisuse, "a product of other operands than another thread's");
    }
    product.sums[lane] = start.sums;
    if (start.a != nullptr) std::ranges::copy(*start.a, product.a[lane].begin());
    if (!options_.watches) continue;
    bool are_ready = false;
    for (Registers& r : threads_[32 * warp + lane].registers) {
      if (r.are_sums && r.begin != reinterpret_cast<const uint8_t*>(start.sums)) continue;
      are_ready |= r.are_sums;
      if (r.were_written) {
        fail(Fault::kRegisters,
             "starts a product of registers with no fence since they were written");
      }
      ++r.in_use;
    }
    if (!are_ready) fail(Fault::kRegisters, "a product onto sums that were not pinned");
  }
  if (shadow_) {
    order_->switch_to_common(warp);
    product.for_places([&](uint32_t place) {
      shadow_->begin_product(32 * warp, shared() + place, kOperandBytes);
    });
    order_->switch_to_common(warp);
  }
  warps_[warp].products.push_back(std::move(product));
}

// All groups that are committed, except the last `pending` ones.
void Machine::end_products(uint32_t warp, uint32_t pending) {
  auto& committed = warps_[warp].committed;
  for (; committed.size() > pending; committed.pop_front()) {
    for (const GroupProduct& product : committed.front()) end_product(warp, product);
  }
}

void Machine::end_product(uint32_t warp, const GroupProduct& product) {
  product.compute(shared());
  product.for_places([&](uint32_t place) {
    if (shadow_) shadow_->end_product(32 * warp, shared() + place, kOperandBytes);
  });
  for (uint32_t lane = 0; lane < 32; ++lane) {
    for (Registers& r : threads_[32 * warp + lane].registers) {
      const auto* sums = reinterpret_cast<const uint8_t*>(product.sums[lane]);
      if ((!r.are_sums || r.begin == sums) && r.in_use > 0) --r.in_use;
    }
  }
}

// PTX ISA, "setmaxnreg": of all warps of a warpgroup; more waits until there are this many in the
// block's pool.
void Machine::set_registers(uint32_t count, bool takes, const Site& site) {
  join_warp(Together::kRegisterCount, nullptr, site);
  if (running_ % 32 != 0) return;
  Warp& warp = warps_[running_ / 32];
  if (takes ? count < warp.registers : count > warp.registers) {
    fail(Fault::kMisuse, std::string(takes ? "take_registers" : "give_up_registers") + " of " +
                             std::to_string(count) + ", and a thread has " +
                             std::to_string(warp.registers));
  }
  while (takes && (count - warp.registers) * 32 > free_registers_) {
    wait(Together::kRegisters, site);
  }
  free_registers_ += (warp.registers - count) * 32;
  warp.registers = count;
  warp.register_changes.push_back(count);
  for (Thread& thread : threads_) {
    if (thread.state == Thread::State::kWaiting && thread.what == Together::kRegisters) {
      thread.state = Thread::State::kReady;
    }
  }
}

}  // namespace blindfuse::emulator
