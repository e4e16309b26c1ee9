#include "client/web/core/preparation.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "client/secret_product.h"
#include "src/base/errors.h"
#include "src/system/random.h"

namespace blindfuse::web {
namespace {

// words[i] are the first of query i for panel `first`.
void multiply(const PublicMatrix& a, std::span<const SecretFactor> factors, uint64_t first,
              uint64_t last, std::vector<uint32_t*> words) {
  for (uint64_t j = first; j < last; ++j) {
    add_panel_products(a, j, factors, words, {});
    for (uint32_t*& at : words) at += kPanelRows;
  }
}

}  // namespace

Preparation::Preparation(const PublicMatrix& a, uint32_t row_count, uint32_t error_max,
                         size_t count)
    : maker_(ProcessToken::current()), a_(a), panel_count_(row_count / kPanelRows) {
  for (size_t i = 0; i < count; ++i) {
    sample_ternary(fill_from_system, secrets_.emplace_back(a.dimension()).span());
    sample_errors(fill_from_system, error_max, masked_.emplace_back(row_count).span());
    factors_.emplace_back(secrets_.back().span());
  }
}

// The seed, and a byte for each number of each secret: modulo 256, which keeps -1, 0 and 1 apart.
std::vector<uint8_t> Preparation::for_others() const {
  std::vector<uint8_t> bytes(a_.seed().begin(), a_.seed().end());
  bytes.reserve(bytes.size() + 4 + secrets_.size() * a_.dimension());
  for (int shift = 0; shift < 32; shift += 8) {
    bytes.push_back(static_cast<uint8_t>(a_.dimension() >> shift));
  }
  for (const SecretBuffer<uint32_t>& secret : secrets_) {
    for (const uint32_t word : secret.span()) bytes.push_back(static_cast<uint8_t>(word));
  }
  return bytes;
}

void Preparation::count_panels(uint64_t first, uint64_t last) {
  invariant(first <= last && last <= panel_count_, "panels lie in the public matrix");
  panels_done_ += last - first;
}

void Preparation::multiply_here(uint64_t first, uint64_t last) {
  count_panels(first, last);
  std::vector<uint32_t*> words;
  for (SecretBuffer<uint32_t>& masked : masked_) {
    words.push_back(masked.span().data() + first * kPanelRows);
  }
  multiply(a_, factors_, first, last, std::move(words));
}

void Preparation::add(uint64_t first, uint64_t last, std::span<const uint8_t> products) {
  count_panels(first, last);
  const auto count = static_cast<size_t>((last - first) * kPanelRows);
  invariant(products.size() == count * 4 * masked_.size(), "there are products for all queries");
  for (SecretBuffer<uint32_t>& masked : masked_) {
    for (uint32_t& word : masked.span().subspan(first * kPanelRows, count)) {
      uint32_t product;
      std::memcpy(&product, products.data(), 4);
      word += product;
      products = products.subspan(4);
    }
  }
}

std::vector<PreparedQuery> Preparation::take_queries() && {
  if (panels_done_ != panel_count_) throw std::logic_error("panels of a preparation are missing");
  std::vector<PreparedQuery> queries;
  for (size_t i = 0; i < secrets_.size(); ++i) {
    queries.emplace_back(maker_, a_.seed(), std::move(secrets_[i]), std::move(masked_[i]));
  }
  return queries;
}

std::vector<uint8_t> multiply_elsewhere(std::span<const uint8_t> for_others, uint64_t first,
                                        uint64_t last) {
  MatrixSeed seed;
  uint32_t dimension = 0;
  invariant(for_others.size() > seed.size() + 4, "a preparation has a seed and a dimension");
  std::copy_n(for_others.begin(), seed.size(), seed.begin());
  std::memcpy(&dimension, for_others.data() + seed.size(), 4);
  const auto numbers = for_others.subspan(seed.size() + 4);
  invariant(dimension > 0 && numbers.size() % dimension == 0, "secrets are whole");
  invariant(first <= last, "panels are in order");
  const PublicMatrix a(seed, dimension);
  std::vector<SecretFactor> factors;
  SecretBuffer<uint32_t> secret(dimension);
  for (size_t at = 0; at < numbers.size(); at += dimension) {
    for (uint32_t k = 0; k < dimension; ++k) {
      secret[k] = static_cast<uint32_t>(static_cast<int8_t>(numbers[at + k]));
    }
    factors.emplace_back(secret.span());
  }
  const auto count = static_cast<size_t>((last - first) * kPanelRows);
  SecretBuffer<uint32_t> products(count * factors.size());
  std::vector<uint32_t*> words;
  for (size_t i = 0; i < factors.size(); ++i) {
    words.push_back(products.span().data() + i * count);
  }
  multiply(a, factors, first, last, std::move(words));
  std::vector<uint8_t> bytes(products.size() * 4);
  std::memcpy(bytes.data(), products.span().data(), bytes.size());
  return bytes;
}

}  // namespace blindfuse::web
