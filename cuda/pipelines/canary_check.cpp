#include "cuda/pipelines/canary_check.h"

#include <algorithm>
#include <string>

#include "src/base/errors.h"

namespace blindfuse {
namespace {

void make_wrong(std::span<uint8_t> response, const std::vector<uint8_t>& right) {
  std::ranges::transform(right, response.begin(),
                         [](uint8_t byte) { return static_cast<uint8_t>(~byte); });
}

}  // namespace

CanaryCheck::CanaryCheck(const Canary& canary, std::span<const uint32_t> slot, Scanner& scanner,
                         std::chrono::milliseconds interval)
    : canary_(canary),
      scanner_(scanner),
      interval_(interval),
      places_(canary.seed),
      query_(slot.size()) {
  BLINDFUSE_CUDA(cudaDeviceSynchronize());  // it is cleared
  const Stream stream;
  BLINDFUSE_CUDA(cudaMemcpyAsync(query_.data(), slot.data(), slot.size_bytes(),
                                 cudaMemcpyHostToDevice, stream.get()));
  stream.wait();
}

bool CanaryCheck::is_due(Scanner::Kernel kernel, uint32_t query_count) const {
  const auto at = right_.find(tile_of(kernel, query_count));
  return at == right_.end() || Clock::now() - at->second >= interval_;
}

bool CanaryCheck::is_right(std::span<const uint8_t> response) const {
  return std::ranges::equal(response, canary_.response);
}

bool CanaryCheck::is_second_right(std::span<const uint8_t> response) const {
  return std::ranges::equal(response, canary_.second_response);
}

uint32_t CanaryCheck::next_place(uint32_t query_count) {
  return static_cast<uint32_t>(places_() % query_count);
}

void CanaryCheck::spoil(std::span<uint8_t> response) const {
  make_wrong(response, canary_.response);
}

void CanaryCheck::spoil_second(std::span<uint8_t> response) const {
  make_wrong(response, canary_.second_response);
}

void CanaryCheck::note_right(Scanner::Kernel kernel, uint32_t query_count) {
  right_[tile_of(kernel, query_count)] = Clock::now();
  scanner_.record().note_passed(name_of(kernel), CheckStage::kCanary);
}

void CanaryCheck::require_fit(Scanner::Kernel kernel) const {
  const std::string name(name_of(kernel));
  if (const auto why = scanner_.record().why_unfit(name)) {
    throw ResourceError("the kernel cuda:" + name +
                        " has been found wrong since this batch began: " + *why +
                        "; the responses of this batch are withheld");
  }
}

void CanaryCheck::blame(Scanner::Kernel kernel, std::string_view responder, uint32_t query_count,
                        std::span<const uint32_t> products, bool is_proved) {
  const auto [found, expected] = std::ranges::mismatch(products, canary_.products);
  const std::string batch = " in a batch of " + std::to_string(query_count);
  if (found == products.end()) {
    blame_responder(
        responder,
        "the response to the server's own query is wrong" + batch + ", and its product is right",
        is_proved);
  }
  uint64_t wrong = 0;
  for (size_t c = 0; c < products.size(); ++c) wrong += products[c] != canary_.products[c];
  const std::string why = std::to_string(wrong) + " of " + std::to_string(products.size()) +
                          " words of the product of the server's own query are wrong" + batch +
                          ", the first in column " + std::to_string(found - products.begin());
  make_all_due();
  scanner_.blame(kernel, CheckStage::kCanary, query_count, why);
}

void CanaryCheck::blame_second(std::string_view responder, uint32_t query_count, bool is_proved) {
  blame_responder(responder,
                  "the second level's response to the server's own query is wrong in a batch of " +
                      std::to_string(query_count) + ", and the first one's is right",
                  is_proved);
}

void CanaryCheck::blame_responder(std::string_view responder, const std::string& why,
                                  bool is_proved) {
  if (!is_proved) {
    scanner_.record().count_failed(responder, CheckStage::kCanary);
    throw UnfitDeviceError(
        "the GPU's " + std::string(responder) + " is wrong for this epoch: " + why +
        "; nothing was answered from it; blindfuse self-test checks the GPU, and --engine cpu "
        "does without it");
  }
  scanner_.record().note_failed(responder, CheckStage::kCanary, why);
  throw DeviceLostError("the GPU's " + std::string(responder) + " is wrong: " + why +
                        "; the responses of this batch are withheld");
}

}  // namespace blindfuse
