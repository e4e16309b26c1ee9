#include "client/ring_query.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "client/deadline.h"
#include "src/arithmetic/little_endian.h"
#include "src/arithmetic/ring/automorphism.h"
#include "src/arithmetic/ring/gadget.h"
#include "src/arithmetic/ring/modulus_switch.h"
#include "src/arithmetic/ring/ntt.h"
#include "src/base/errors.h"
#include "src/protocol/public_matrix.h"
#include "src/protocol/public_polynomials.h"

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

// The values of ternary words at the points.
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
  SecretBuffer<uint32_t> secret;  // ternary words
  SecretBuffer<uint32_t> masked;
  std::vector<uint8_t> packing_keys;
  SecretBuffer<uint32_t> values;  // of the secret, at the points
  SecretBuffer<uint32_t> second;  // e2 is where b2' will be
};

RingQueryMaker::RingQueryMaker(const ring::PublicPolynomials& polynomials, uint32_t row_count,
                               const Second& second, uint32_t bucket_count)
    : polynomials_(polynomials),
      key_masks_(polynomials.key_masks()),
      row_count_(row_count),
      second_(second),
      bucket_count_(bucket_count),
      short_key_masks_(polynomials.short_key_masks()) {
  invariant(row_count > 0 && row_count % kDimension == 0, "rows are blocks of 2048");
  invariant(bucket_count > 0, "there are buckets");
}

std::vector<PreparedQuery> RingQueryMaker::make(size_t count, const RandomSource& random,
                                                const ProgressCallback& progress) const {
  const ProcessToken maker = ProcessToken::current();
  std::vector<Unfinished> unfinished(count);
  for (Unfinished& query : unfinished) {
    query.secret = fresh_ternary(kDimension, random);
    query.masked = fresh_ternary(word_count(), random);
    query.values = values_of(query.secret.span());
    append_packing_key(polynomial(std::as_const(query.values)), {1}, key_masks_, random, progress,
                       query.packing_keys);
    if (second_.key_order > 0) {
      append_packing_key(polynomial(std::as_const(query.values)),
                         {ring::kOrbit / second_.key_order}, short_key_masks_, random, progress,
                         query.packing_keys);
    }
    query.second = fresh_ternary(second_.row_count, random);
  }
  if (count > 0) add_products(unfinished, progress);
  add_second_products(unfinished);
  std::vector<PreparedQuery> queries;
  queries.reserve(count);
  for (Unfinished& query : unfinished) {
    queries.emplace_back(maker, polynomials_.seed(), std::move(query.secret),
                         std::move(query.masked), std::move(query.packing_keys),
                         SecondQuery{std::move(query.second), second_.key_order}, bucket_count_);
  }
  return queries;
}

// The key of an automorphism, of a secret at the points.
void RingQueryMaker::append_packing_key(Polynomial secret, const ring::Automorphism& automorphism,
                                        const KeyMasks& masks, const RandomSource& random,
                                        const ProgressCallback& progress,
                                        std::vector<uint8_t>& bytes) const {
  const ring::PrimeField& field = packing_ntt().field();
  SecretBuffer<uint32_t> moved(kDimension);
  ring::apply(automorphism, secret, polynomial(moved));
  const size_t first = bytes.size();
  bytes.resize(first + ring::kKeyBytes);
  uint8_t* to = bytes.data() + first;
  for (size_t k = 0; k < ring::kDigits; ++k) {
    const Polynomial mask = masks.mask(k);
    const SecretBuffer<uint32_t> error = values_of(fresh_ternary(kDimension, random).span());
    for (size_t i = 0; i < kDimension; ++i, to += 4) {
      const uint32_t masked = field.multiply(secret[i], mask[i]);
      const uint32_t digit = field.multiply(moved[i], ring::gadget(k));
      store_le(to, field.add(field.subtract(error[i], masked), digit));
    }
    report(progress, 0);
  }
}

// second = s a2_j + e2 modulo the packing modulus, for every block j of every query.
void RingQueryMaker::add_second_products(std::span<Unfinished> queries) const {
  const ring::PrimeField& field = packing_ntt().field();
  Coefficients block;
  SecretBuffer<uint32_t> product(kDimension), errors(kDimension);
  for (uint32_t first = 0; first < second_.row_count; first += kDimension) {
    polynomials_.fill_second_block(first / static_cast<uint32_t>(kDimension), block);
    const size_t count = std::min<size_t>(kDimension, second_.row_count - first);
    for (Unfinished& query : queries) {
      for (size_t i = 0; i < kDimension; ++i) {
        product[i] = field.multiply(block[i], query.values[i]);
      }
      packing_ntt().inverse(polynomial(product));
      const auto words = query.second.span().subspan(first, count);
      std::copy(words.begin(), words.end(), errors.span().begin());
      to_field(errors.span(), field, polynomial(errors));
      for (size_t i = 0; i < count; ++i) words[i] = field.add(errors[i], product[i]);
    }
  }
}

// masked += s a_j for every block j of every bucket of every query.
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
  for (uint64_t first = 0; first < word_count(); first += kDimension) {
    polynomials_.fill_block(static_cast<uint32_t>(first / row_count_),
                            static_cast<uint32_t>(first % row_count_ / kDimension), block);
    products.forward_words(block, public_values);
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
  report_progress(progress, {ClientStage::kPreparingQueries, rows_done, word_count()});
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

QueryPreparation::QueryPreparation(const Manifest& manifest) : manifest_(manifest) {
  const Layout& layout = manifest.layout;
  if (layout.mode() == Mode::kPacked) {
    RingQueryMaker::Second second;
    if (layout.second) second = {layout.second_row_count(), layout.second->key_order};
    ring_.emplace(ring::PublicPolynomials(manifest.seed), layout.row_count, second,
                  layout.bucket_count());
  }
}

std::vector<PreparedQuery> QueryPreparation::make(size_t count, unsigned thread_count,
                                                  const RandomSource& random,
                                                  const ProgressCallback& progress) const {
  if (ring_) return ring_->make(count, random, progress);
  const LweParams& lwe = *manifest_.layout.lwe;
  return prepare_queries(PublicMatrix(manifest_.seed, lwe.dimension), manifest_.layout.row_count,
                         lwe.error_max, count, thread_count, random, progress);
}

std::vector<PreparedQuery> prepare_queries_for(const Manifest& manifest, size_t count,
                                               unsigned thread_count, const RandomSource& random,
                                               const ProgressCallback& progress) {
  return QueryPreparation(manifest).make(count, thread_count, random, progress);
}

}  // namespace blindfuse
