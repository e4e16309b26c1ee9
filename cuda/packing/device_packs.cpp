#include "cuda/packing/device_packs.h"

#include <algorithm>
#include <utility>

#include "cuda/packing/table_kernels.h"
#include "src/base/errors.h"

namespace blindfuse {
namespace {

uint32_t pack_count_of(uint64_t column_count) {
  return static_cast<uint32_t>((column_count + kPackColumns - 1) / kPackColumns);
}

// At the time when most of it is in use.
uint64_t bytes_needed(const DeviceMatrix& matrix, uint64_t block_words) {
  const uint64_t column_count = matrix.column_count();
  const uint64_t packs = pack_count_of(column_count);
  const uint64_t tables = packs * (kTableBytes + sizeof(uint32_t) * kRingWords);
  return packs * kPackSquareWords * sizeof(uint32_t) +
         std::max(hint_words_bytes(matrix.row_count(), column_count, block_words), tables);
}

DeviceMemory<uint32_t> hints_of(Scanner& scanner, const DeviceMatrix& matrix,
                                const PublicBlocks& blocks) {
  require_room(bytes_needed(matrix, blocks.words.size()), "packing tables that are being made",
               "--engine cpu makes them on the processor");
  scanner.calibrate();
  return make_hint_words(scanner, matrix, blocks);
}

}  // namespace

DevicePacks::DevicePacks(Scanner& scanner, const DeviceMatrix& matrix, const PublicBlocks& blocks,
                         std::span<const uint32_t> key_masks)
    : DevicePacks(matrix.device(), hints_of(scanner, matrix, blocks), key_masks) {}

DevicePacks::DevicePacks(int device, DeviceMemory<uint32_t> hints,
                         std::span<const uint32_t> key_masks)
    : device_(device), pack_count_(pack_count_of(hints.size() / kRingWords)) {
  invariant(key_masks.size() == ring::kKeyWords, "a mask for each digit");
  DeviceMemory<uint32_t> squares(uint64_t{pack_count_} * kPackSquareWords);
  BLINDFUSE_CUDA(cudaDeviceSynchronize());  // all is cleared
  const uint64_t columns = hints.size() / kRingWords;
  start_traces({ring_.view(), hints.data(), columns, squares.data()}, pack_count_, stream_.get());
  stream_.wait();
  hints = {};  // not all at the same time
  make_tables(squares, key_masks);
}

void DevicePacks::make_tables(const DeviceMemory<uint32_t>& squares,
                              std::span<const uint32_t> key_masks) {
  tables_ = DeviceMemory<uint32_t>(pack_count_ * kTableWords);
  masks_ = DeviceMemory<uint32_t>(pack_count_ * uint64_t{kRingWords});
  const DeviceMemory<uint32_t> device_key_masks(key_masks.size());
  BLINDFUSE_CUDA(cudaDeviceSynchronize());  // all is cleared
  BLINDFUSE_CUDA(cudaMemcpyAsync(device_key_masks.data(), key_masks.data(), key_masks.size_bytes(),
                                 cudaMemcpyHostToDevice, stream_.get()));
  start_tables({ring_.view(), squares.data(), device_key_masks.data(), tables_.data(),
                masks_.data(), static_cast<uint32_t>(kKeySwitches)},
               pack_count_, stream_.get());
  stream_.wait();
}

void DevicePacks::read(uint32_t pack, MutablePackingTable table, ring::MutablePolynomial mask) {
  invariant(pack < pack_count_, "a pack of the matrix's columns");
  BLINDFUSE_CUDA(cudaSetDevice(device_));
  BLINDFUSE_CUDA(cudaMemcpyAsync(table.data(), tables_.data() + pack * kTableWords, kTableBytes,
                                 cudaMemcpyDeviceToHost, stream_.get()));
  BLINDFUSE_CUDA(cudaMemcpyAsync(mask.data(), masks_.data() + pack * mask.size(), mask.size_bytes(),
                                 cudaMemcpyDeviceToHost, stream_.get()));
  stream_.wait();
}

}  // namespace blindfuse
