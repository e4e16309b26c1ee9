// Napkin, on an H200: 256 MiB over 16 lanes of PCIe 5 (63 GB/s) take 4.3 ms.
//
// The product is of 8192 x 8192 bytes: 65536 rows are 4.4 T multiply-adds, 4.4 ms of the dense peak
// of 990 T/s.
#include "bench/cuda/yardsticks.h"

#include <algorithm>
#include <span>
#include <utility>

#include "src/base/errors.h"

namespace blindfuse::bench {
namespace {

constexpr int kProductDepth = 65'536;
constexpr int kProductSide = 8'192;
constexpr uint64_t kOperandBytes = uint64_t{kProductSide} * kProductDepth;
static_assert(2 * kOperandBytes <= Sizes().operand_bytes,
              "both operands are random bytes of the source");

uint64_t bytes_of(const DeviceMatrix& matrix) { return matrix.pitch() * matrix.column_count(); }

// Fills the memory with a block of random bytes and copies of it that begin elsewhere.
void fill(const DeviceMemory<int8_t>& memory, const RandomBytes& random) {
  constexpr uint64_t kBlock = RandomBytes::kBytes;
  static_assert(Sizes().operand_bytes % kBlock == 0 && kTinySizes.operand_bytes % kBlock == 0);
  BLINDFUSE_CUDA(
      cudaMemcpy(memory.data(), random.part(kBlock, 0).data(), kBlock, cudaMemcpyHostToDevice));
  for (uint64_t i = 1; i < memory.size() / kBlock; ++i) {
    const uint64_t cut = i * 1'234'577 % kBlock;
    int8_t* const to = memory.data() + i * kBlock;
    BLINDFUSE_CUDA(cudaMemcpy(to, memory.data() + cut, kBlock - cut, cudaMemcpyDeviceToDevice));
    BLINDFUSE_CUDA(cudaMemcpy(to + kBlock - cut, memory.data(), cut, cudaMemcpyDeviceToDevice));
  }
}

void fill(std::span<uint8_t> memory, const RandomBytes& random) {
  constexpr size_t kPart = 1 << 20;
  for (size_t i = 0; i < memory.size(); i += kPart) {
    const size_t count = std::min(kPart, memory.size() - i);
    std::ranges::copy(random.part(count, i), memory.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

}  // namespace

Rates median(const std::vector<Rates>& rounds) {
  const auto of = [&](double Rates::*rate) {
    std::vector<double> values;
    for (const Rates& rates : rounds) values.push_back(rates.*rate);
    return median(std::move(values));
  };
  return {of(&Rates::read), of(&Rates::multiplied), of(&Rates::sent)};
}

Yardsticks::Yardsticks(const RandomBytes& random, const Options& options)
    : sizes_(options.sizes()),
      stopwatch_(sizes_.lead_in_bytes),
      source_(sizes_.operand_bytes),
      target_(sizes_.sent_bytes),
      folded_(1),
      host_(sizes_.sent_bytes) {
  fill(source_, random);
  fill(host_.span(), random);
  BLINDFUSE_CUDA(cudaDeviceSynchronize());  // all is cleared and filled
  if (options.rehearsal) {
    why_no_product_ = "a rehearsal does without";
  } else {
    try_product();
  }
}

// The library is not ours: if it is missing, or fails, everything else must still be measured.
void Yardsticks::try_product() {
  try {
    product_ = std::make_unique<const ByteProduct>(kProductSide, kProductDepth);
    multiplied_per_second();
    return;
  } catch (const InputError& error) {
    why_no_product_ = error.what();
  } catch (const ResourceError& error) {
    why_no_product_ = error.what();
    BLINDFUSE_CUDA(cudaDeviceSynchronize());
  }
  product_.reset();
}

Rates Yardsticks::measure(const DeviceMatrix& matrix) {
  // The product comes first and the transfer after it: a measurement right after the one that draws
  // most power would find the clocks lowered.
  Rates rates;
  rates.multiplied = multiplied_per_second();
  rates.sent = sent_per_second();
  rates.read = read_per_second(matrix);
  return rates;
}

double Yardsticks::sent_per_second() {
  const double seconds = stopwatch_.seconds(stream_, [&] {
    BLINDFUSE_CUDA(cudaMemcpyAsync(target_.data(), host_.data(), sizes_.sent_bytes,
                                   cudaMemcpyHostToDevice, stream_.get()));
  });
  return static_cast<double>(sizes_.sent_bytes) / seconds;
}

double Yardsticks::multiplied_per_second() {
  if (product_ == nullptr) return 0;
  const double seconds = stopwatch_.seconds(stream_, [&] {
    product_->start(source_.data(), source_.data() + kOperandBytes, stream_.get());
  });
  return static_cast<double>(kOperandBytes) * kProductSide / seconds;
}

double Yardsticks::read_per_second(const DeviceMatrix& matrix) {
  const double seconds = stopwatch_.seconds(stream_, [&] { start_read(matrix); });
  return static_cast<double>(bytes_of(matrix)) / seconds;
}

uint32_t Yardsticks::fold(const DeviceMatrix& matrix) {
  uint32_t folded = 0;
  BLINDFUSE_CUDA(cudaMemsetAsync(folded_.data(), 0, sizeof folded, stream_.get()));
  start_read(matrix);
  BLINDFUSE_CUDA(cudaMemcpyAsync(&folded, folded_.data(), sizeof folded, cudaMemcpyDeviceToHost,
                                 stream_.get()));
  stream_.wait();
  return folded;
}

void Yardsticks::start_read(const DeviceMatrix& matrix) {
  start_read_all(matrix.data(), bytes_of(matrix), folded_.data(), stream_.get());
}

}  // namespace blindfuse::bench
