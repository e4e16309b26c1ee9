// Products of a warpgroup, with the fences, registers and waits that they need (machine_state.h).
#include <algorithm>
#include <utility>

#include "tests/cuda/machine_state.h"

namespace blindfuse::emulator {

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
