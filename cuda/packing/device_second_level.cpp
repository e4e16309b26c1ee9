#include "cuda/packing/device_second_level.h"

#include <algorithm>

#include "cuda/device/stream.h"
#include "cuda/packing/second_level_kernels.h"
#include "src/base/errors.h"

namespace blindfuse {
namespace {

uint64_t block_words(const SecondLevelSpec& spec) {
  return uint64_t{spec.block_count()} * kRingWords;
}

}  // namespace

DeviceSecondLevel::Sizes::Sizes(const SecondLevelSpec& spec, size_t batch_max,
                                uint64_t square_bytes_max)
    : polynomials(block_words(spec) + ring::kKeyWords),
      response_words(second_response_words(spec.pack_count(), spec.mask_bits, spec.response_bits)),
      responses(batch_max * response_words) {
  const uint64_t query_squares = uint64_t{spec.pack_count()} * kPackSquareWords;
  const uint64_t fitting = square_bytes_max / sizeof(uint32_t) / query_squares;
  at_once = static_cast<uint32_t>(std::clamp<uint64_t>(fitting, 1, batch_max));
  squares = at_once * query_squares;
  products = uint64_t{at_once} * spec.column_count;
}

uint64_t DeviceSecondLevel::bytes_of(const SecondLevelSpec& spec, size_t lane_count,
                                     size_t batch_max, uint64_t square_bytes_max) {
  const Sizes sizes(spec, batch_max, square_bytes_max);
  return DeviceNtt::kBytes +
         sizeof(uint32_t) *
             (sizes.polynomials + lane_count * (sizes.squares + sizes.products + sizes.responses));
}

DeviceSecondLevel::DeviceSecondLevel(const SecondLevelSpec& spec, size_t lane_count,
                                     size_t batch_max, uint64_t square_bytes_max)
    : spec_(spec),
      sizes_(spec, batch_max, square_bytes_max),
      polynomials_(sizes_.polynomials),
      lanes_(lane_count),
      numbers_at_(ring::kKeyWords + spec.key_bytes() / sizeof(uint32_t)) {
  const uint32_t powers = spec.key_switches() + 1;
  invariant(spec.row_count > 0 && spec.column_count > 0 && spec.word_bits <= kSecondWordBitsMax,
            "a second level of the planner's sizes");
  invariant(kOrbitWords % powers == 0 && (spec.key_order == 0 || spec.column_count <= powers),
            "a short key for all columns of a row");
  invariant(spec.blocks.size() == block_words(spec) && spec.key_masks.size() == ring::kKeyWords,
            "a polynomial for each 2048 rows, and a mask for each digit");
  for (Lane& lane : lanes_) {
    lane.squares = DeviceMemory<uint32_t>(sizes_.squares);
    lane.products = DeviceMemory<uint32_t>(sizes_.products);
    lane.responses = DeviceMemory<uint32_t>(sizes_.responses);
  }
  BLINDFUSE_CUDA(cudaDeviceSynchronize());  // all is cleared
  const Stream stream;
  const auto send = [&](uint32_t* to, std::span<const uint32_t> from) {
    BLINDFUSE_CUDA(
        cudaMemcpyAsync(to, from.data(), from.size_bytes(), cudaMemcpyHostToDevice, stream.get()));
  };
  send(polynomials_.data(), spec.blocks);
  send(polynomials_.data() + spec.blocks.size(), spec.key_masks);
  stream.wait();
  spec_.blocks = spec_.key_masks = {};  // the caller's
}

void DeviceSecondLevel::start(size_t number, const FirstLevelBatch& batch,
                              cudaStream_t stream) const {
  const Lane& lane = lanes_[number];
  const ring::PrimeField field(ring::kPackingModulus);
  const uint32_t powers = spec_.key_switches() + 1;
  for (uint32_t first = 0; first < batch.query_count; first += sizes_.at_once) {
    const uint32_t* extras = batch.extras + first * batch.extra_pitch;
    const uint32_t* numbers = extras + numbers_at_;
    const SecondLevelArgs args{
        .ring = ring_.view(),
        .words = {batch.responses + first * batch.response_pitch, batch.response_pitch,
                  spec_.word_bits},
        .word_count = batch.word_count,
        .row_count = spec_.row_count,
        .column_count = spec_.column_count,
        .pack_count = spec_.pack_count(),
        .numbers = {numbers, batch.extra_pitch, spec_.query_bits},
        .keys = numbers - ring::kKeyWords,  // the last one
        .key_pitch = batch.extra_pitch,
        .blocks = polynomials_.data(),
        .key_masks = polynomials_.data() + block_words(spec_),
        .scale = ring::MontgomeryConstant::of(field.inverse(powers), field),
        .key_switch_count = spec_.key_switches(),
        .power_step = kOrbitWords / powers,
        .squares = lane.squares.data(),
        .products = lane.products.data(),
        .mask_bits = spec_.mask_bits,
        .response_bits = spec_.response_bits,
        .responses = lane.responses.data() + first * sizes_.response_words,
    };
    start_second_level(args, std::min(sizes_.at_once, batch.query_count - first), stream);
  }
}

}  // namespace blindfuse
