#include "client/ring_query.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "client/report_progress.h"
#include "src/arithmetic/little_endian.h"
#include "src/arithmetic/ring/automorphism.h"
#include "src/arithmetic/ring/crt_ntt.h"
#include "src/arithmetic/ring/gadget.h"
#include "src/arithmetic/ring/modulus_switch.h"
#include "src/arithmetic/ring/ntt.h"
#include "src/base/errors.h"

namespace blindfuse {
namespace {

using ring::kDimension;
using ring::MutablePolynomial;
using ring::Polynomial;
using Coefficients = std::array<uint32_t, kDimension>;

MutablePolynomial polynomial(SecretBuffer<uint32_t>& buffer) {
  return MutablePolynomial(buffer.span().data(), kDimension);
}
Polynomial polynomial(const SecretBuffer<uint32_t>& buffer) {
  return Polynomial(buffer.span().data(), kDimension);
}

const ring::Ntt& packing_ntt() {
  static const auto made = ring::portable_ntt(ring::kPackingModulus);
  return *made;
}

// Ternary words modulo 2^32, modulo the field's prime, without a branch on them.
void to_field(std::span<const uint32_t> ternary, const ring::PrimeField& field,
              MutablePolynomial out) {
  for (size_t i = 0; i < kDimension; ++i) {
    const uint32_t sign = ternary[i] >> 31;
    out[i] = ternary[i] + ((0u - sign) & field.modulus());
  }
}

// Of ternary words, at the points.
SecretBuffer<uint32_t> values_of(std::span<const uint32_t> ternary) {
  SecretBuffer<uint32_t> values(kDimension);
  to_field(ternary, packing_ntt().field(), polynomial(values));
  packing_ntt().forward(polynomial(values));
  return values;
}

SecretBuffer<uint32_t> fresh_ternary(size_t count, const RandomSource& random) {
  SecretBuffer<uint32_t> words(count);
  sample_ternary(random, words.span());
  return words;
}

}  // namespace

// A query before its products: e is where b' will be.
struct RingQueryMaker::Unfinished {
  SecretBuffer<uint32_t> secret;
  SecretBuffer<uint32_t> masked;
  std::vector<uint8_t> packing_key;
};

RingQueryMaker::RingQueryMaker(const ring::PublicPolynomials& polynomials, uint32_t row_count)
    : polynomials_(polynomials), key_masks_(polynomials.key_masks()), row_count_(row_count) {
  invariant(row_count > 0 && row_count % kDimension == 0, "rows are blocks of 2048");
}

std::vector<PreparedQuery> RingQueryMaker::make(size_t count, const RandomSource& random,
                                                const ProgressCallback& progress) const {
  const ProcessToken maker = ProcessToken::current();
  std::vector<Unfinished> unfinished(count);
  for (Unfinished& query : unfinished) {
    query.secret = fresh_ternary(kDimension, random);
    query.masked = fresh_ternary(row_count_, random);
    query.packing_key = packing_key(query.secret.span(), random, progress);
  }
  if (count > 0) add_products(unfinished, progress);
  std::vector<PreparedQuery> queries;
  queries.reserve(count);
  for (Unfinished& query : unfinished) {
    queries.emplace_back(maker, polynomials_.seed(), std::move(query.secret),
                         std::move(query.masked), std::move(query.packing_key));
  }
  return queries;
}

std::vector<uint8_t> RingQueryMaker::packing_key(std::span<const uint32_t> secret,
                                                 const RandomSource& random,
                                                 const ProgressCallback& progress) const {
  const ring::PrimeField& field = packing_ntt().field();
  const SecretBuffer<uint32_t> values = values_of(secret);
  SecretBuffer<uint32_t> moved(kDimension);
  std::vector<uint8_t> bytes(ring::kKeyBytes);
  uint8_t* to = bytes.data();
  constexpr ring::Automorphism kFive = {1};
  ring::apply(kFive, polynomial(values), polynomial(moved));
  for (size_t k = 0; k < ring::kDigits; ++k) {
    const Polynomial mask = key_masks_.mask(k);
    const SecretBuffer<uint32_t> error = values_of(fresh_ternary(kDimension, random).span());
    for (size_t i = 0; i < kDimension; ++i, to += 4) {
      const uint32_t masked = field.multiply(values[i], mask[i]);
      const uint32_t digit = field.multiply(moved[i], ring::gadget(k));
      store_le(to, field.add(field.subtract(error[i], masked), digit));
    }
    report(progress, 0);
  }
  return bytes;
}

// masked += s a_j for every block j of every query.
void RingQueryMaker::add_products(std::span<Unfinished> queries,
                                  const ProgressCallback& progress) const {
  const ring::CrtNtt products;
  SecretBuffer<ring::CrtResidues> secrets(queries.size());
  for (size_t i = 0; i < queries.size(); ++i) {
    products.forward_words(polynomial(queries[i].secret), secrets[i]);
  }
  Coefficients block;
  ring::CrtResidues public_values;
  SecretBuffer<ring::CrtResidues> sum(1);
  SecretBuffer<uint32_t> product(kDimension);
  for (uint32_t j = 0; j < row_count_ / kDimension; ++j) {
    polynomials_.fill_block(j, block);
    products.forward_words(block, public_values);
    const uint64_t first = uint64_t{j} * kDimension;
    for (size_t i = 0; i < queries.size(); ++i) {
      sum[0] = {};
      products.add_product(public_values, secrets[i], sum[0]);
      products.to_words(sum[0], polynomial(product));
      for (size_t k = 0; k < kDimension; ++k) queries[i].masked[first + k] += product[k];
    }
    report(progress, first + kDimension);
  }
}

void RingQueryMaker::report(const ProgressCallback& progress, uint64_t rows_done) const {
  report_progress(progress, {ClientStage::kPreparingQueries, rows_done, row_count_});
}

PreparedQuery prepare_ring_query(const ring::PublicPolynomials& polynomials, uint32_t row_count,
                                 const RandomSource& random) {
  return std::move(RingQueryMaker(polynomials, row_count).make(1, random).front());
}

RingDecoder::RingDecoder(DecodingSecret secret) : secret_(std::move(secret).take()) {
  invariant(secret_.size() == kDimension, "a ring secret has 2048 words");
  to_field(secret_.span(), packing_ntt().field(), polynomial(secret_));
  packing_ntt().forward(polynomial(secret_));
}

void RingDecoder::decode(Polynomial mask, Body body, std::span<uint8_t, kPackColumns> bytes) const {
  SecretBuffer<uint32_t> found(kPackColumns);
  phases(mask, body, found.span().first<kPackColumns>());
  for (size_t c = 0; c < kPackColumns; ++c) bytes[c] = ring::nearest_byte(found[c]);
}

void RingDecoder::phases(Polynomial mask, Body body, std::span<uint32_t, kPackColumns> out) const {
  if (secret_.empty()) throw std::logic_error("this decoder was moved away");
  const ring::PrimeField& field = packing_ntt().field();
  SecretBuffer<uint32_t> product(kDimension);
  std::copy(mask.begin(), mask.end(), product.span().begin());
  packing_ntt().forward(polynomial(product));
  for (size_t i = 0; i < kDimension; ++i) product[i] = field.multiply(product[i], secret_[i]);
  packing_ntt().inverse(polynomial(product));
  for (size_t c = 0; c < kPackColumns; ++c) out[c] = field.subtract(body[c], product[c]);
}

}  // namespace blindfuse
