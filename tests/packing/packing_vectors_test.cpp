// Tables, masks and bodies against tests/vectors/packing.json, which another program made from
// docs/PROTOCOL.md, section 19.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <vector>

#include "host/cpu/packing/hint_polynomials.h"
#include "host/cpu/packing/packing_keys.h"
#include "host/cpu/packing/packing_table_builder.h"
#include "host/cpu/packing/response_packer.h"
#include "src/arithmetic/bit_sequence.h"
#include "src/arithmetic/ring/modulus_switch.h"
#include "src/protocol/public_polynomials.h"
#include "src/protocol/sha256.h"
#include "tests/packing/expect_words.h"
#include "tests/vectors.h"

namespace blindfuse {
namespace {

using ring::kDigits;
using ring::kDimension;
using vectors::json;

// The bytes of a label: see bytes_rule in the file.
std::vector<int8_t> column(size_t number, size_t row_count) {
  std::string hashed = "packing/column/" + std::to_string(number) + std::string(8, '\0');
  std::vector<int8_t> bytes;
  for (uint64_t block = 0; bytes.size() < row_count; ++block) {
    for (size_t i = 0; i < 8; ++i) {
      hashed[hashed.size() - 8 + i] = static_cast<char>(block >> (8 * i));
    }
    const Sha256Digest digest =
        sha256({reinterpret_cast<const uint8_t*>(hashed.data()), hashed.size()});
    for (const uint8_t byte : digest) bytes.push_back(static_cast<int8_t>(byte));
  }
  bytes.resize(row_count);
  return bytes;
}

// The words of one switch, one digit after another, in the order of the points.
std::vector<uint32_t> words_of_switch(std::span<const uint32_t> table, size_t number) {
  std::vector<uint32_t> words;
  for (size_t digit = 0; digit < kDigits; ++digit) {
    for (size_t group = 0; group < kPointGroups; ++group) {
      const auto some = table.subspan(table_place(group, number, digit), kPointsTogether);
      words.insert(words.end(), some.begin(), some.end());
    }
  }
  return words;
}

TEST(PackingVectors, TableMaskAndBodyAreTheFrozenOnes) {
  const json file = vectors::read_vectors("packing.json");
  const size_t row_count = file.at("row_count");
  const size_t column_count = file.at("column_count");
  const ring::PublicPolynomials polynomials(vectors::array_from_hex<32>(file.at("seed")));

  std::vector<uint32_t> hints(kPackColumns * kDimension);
  const HintPolynomials hint(polynomials.blocks(static_cast<uint32_t>(row_count)));
  for (size_t c = 0; c < column_count; ++c) {
    hint.compute(column(c, row_count),
                 ring::MutablePolynomial(hints.data() + c * kDimension, kDimension));
  }
  expect_words(std::span(hints).first(column_count * kDimension), file.at("hint_polynomials"));

  std::vector<uint32_t> table(kTableWords);
  std::array<uint32_t, kDimension> mask;
  PackingTableBuilder(polynomials.key_masks()).build(hints, MutablePackingTable(table), mask);
  for (const json& each : file.at("switches")) {
    SCOPED_TRACE(each.at("i"));
    expect_words(words_of_switch(table, kKeySwitches - 1 - each.at("i").get<size_t>()), each);
  }
  std::vector<uint32_t> in_order;
  for (size_t number = 0; number < kKeySwitches; ++number) {
    const std::vector<uint32_t> words = words_of_switch(table, number);
    in_order.insert(in_order.end(), words.begin(), words.end());
  }
  expect_words(in_order, file.at("table"));
  expect_words(mask, file.at("mask"));

  const unsigned mask_bits = file.at("bits").at("mask");
  std::vector<uint32_t> lowered(mask.begin(), mask.end());
  for (uint32_t& word : lowered) {
    word = restore_word(ring::switch_from_q(word, mask_bits), mask_bits);
  }
  std::vector<uint8_t> sent(bit_sequence_bytes(kDimension, mask_bits));
  write_bit_sequence(lowered, mask_bits, sent);
  EXPECT_EQ(vectors::to_hex(sha256(sent)), file.at("lowered_mask_sha256").get<std::string>());

  const PackingKeys keys = PackingKeys::read(vectors::from_hex(file.at("key")));
  const auto responses = file.at("responses").get<std::vector<uint32_t>>();
  std::array<uint32_t, kDimension> body;
  const ResponsePacker::Task task{keys.words(), responses, body};
  ResponsePacker().pack(PackingTable(table), {&task, 1});
  expect_words(std::span(body).first(column_count), file.at("body"));
}

}  // namespace
}  // namespace blindfuse
