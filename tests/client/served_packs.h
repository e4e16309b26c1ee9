// The packs of a fake server's database, made and used by the server's own code.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "host/cpu/packing/hint_polynomials.h"
#include "host/cpu/packing/packing_keys.h"
#include "host/cpu/packing/packing_table_builder.h"
#include "host/cpu/packing/response_packer.h"
#include "src/arithmetic/ring/modulus_switch.h"
#include "src/protocol/public_polynomials.h"
#include "tests/reference_pir.h"

namespace blindfuse {

class ServedPacks {
 public:
  using Bytes = reference_pir::Bytes;
  using BucketOf = std::function<uint32_t(size_t column)>;

  // Of the columns of a matrix, one after another, in the buckets that bucket_of says.
  ServedPacks(
      const MatrixSeed& seed, uint32_t mask_bits, const reference_pir::Matrix& matrix,
      const BucketOf& bucket_of = [](size_t) { return 0u; })
      : column_count_(matrix.column_count) {
    const size_t rows = matrix.row_count;
    for (size_t first = 0; first < column_count_; first += kPackColumns) {
      const size_t count = std::min(kPackColumns, column_count_ - first);
      std::vector<uint32_t> buckets;
      for (size_t c = 0; c < count; ++c) buckets.push_back(bucket_of(first + c));
      packs_.push_back(pack_of(seed, mask_bits,
                               reference_pir::slice(matrix.bytes, first * rows, count * rows), rows,
                               buckets));
    }
  }

  // In the clients' form.
  std::vector<Bytes> masks() const {
    std::vector<Bytes> masks;
    for (const auto& pack : packs_) masks.push_back(pack->mask);
    return masks;
  }

  // The response, from the products of all columns and the query's packing key.
  Bytes respond(const reference_pir::Words& products, const Bytes& packing_key,
                uint32_t response_bits) const {
    static const ResponsePacker packer;
    const PackingKeys keys = PackingKeys::read(packing_key);
    reference_pir::Words numbers;
    for (size_t p = 0; p < packs_.size(); ++p) {
      const size_t first = p * kPackColumns;
      const size_t count = std::min(kPackColumns, column_count_ - first);
      std::array<uint32_t, ring::kDimension> body;
      const ResponsePacker::Task task{keys.words(), std::span(products).subspan(first, count),
                                      body};
      packer.pack(PackingTable(packs_[p]->table), {&task, 1});
      for (size_t c = 0; c < count; ++c)
        numbers.push_back(ring::switch_from_q(body[c], response_bits));
    }
    return reference_pir::pack(numbers, response_bits);
  }

 private:
  struct Pack {
    // Of up to 1024 columns of the matrix, one after another.
    Pack(const MatrixSeed& seed, uint32_t mask_bits, const Bytes& columns, size_t rows,
         const std::vector<uint32_t>& buckets)
        : table(kTableWords) {
      const ring::PublicPolynomials polynomials(seed);
      const PackingTableBuilder builder(polynomials.key_masks());
      std::optional<HintPolynomials> hint;
      std::vector<uint32_t> hints(kPackColumns * ring::kDimension);
      for (size_t c = 0; c < buckets.size(); ++c) {
        if (c == 0 || buckets[c] != buckets[c - 1]) {
          hint.emplace(polynomials.blocks(static_cast<uint32_t>(rows), buckets[c]));
        }
        hint->compute(
            {reinterpret_cast<const int8_t*>(columns.data()) + c * rows, rows},
            ring::MutablePolynomial(hints.data() + c * ring::kDimension, ring::kDimension));
      }
      std::array<uint32_t, ring::kDimension> coefficients;
      builder.build(hints, MutablePackingTable(table), coefficients);
      reference_pir::Words numbers;
      for (const uint32_t each : coefficients)
        numbers.push_back(ring::switch_from_q(each, mask_bits));
      mask = reference_pir::pack(numbers, mask_bits);
    }

    std::vector<uint32_t> table;
    Bytes mask;
  };

  // Made once of the same columns, as that takes a while.
  static std::shared_ptr<const Pack> pack_of(const MatrixSeed& seed, uint32_t mask_bits,
                                             const Bytes& columns, size_t rows,
                                             const std::vector<uint32_t>& buckets) {
    static std::map<Bytes, std::shared_ptr<const Pack>> made;  // by the hash of what it is of
    using reference_pir::operator+;
    const Bytes name = Bytes(seed.begin(), seed.end()) + Bytes(1, static_cast<uint8_t>(mask_bits)) +
                       reference_pir::bytes_of_words(buckets) + columns;
    std::shared_ptr<const Pack>& pack = made[reference_pir::sha256(name)];
    if (!pack) pack = std::make_shared<const Pack>(seed, mask_bits, columns, rows, buckets);
    return pack;
  }

  size_t column_count_;
  std::vector<std::shared_ptr<const Pack>> packs_;
};

}  // namespace blindfuse
