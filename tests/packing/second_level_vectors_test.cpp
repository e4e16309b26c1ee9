// The mask and the words of a second level against tests/vectors/second_level.json, which another
// program made from docs/PROTOCOL.md, section 20.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <vector>

#include "client/ring_query.h"
#include "host/cpu/packing/packing_keys.h"
#include "host/cpu/packing/second_level_packer.h"
#include "src/arithmetic/bit_sequence.h"
#include "src/arithmetic/ring/modulus_switch.h"
#include "src/protocol/manifest.h"
#include "src/protocol/public_polynomials.h"
#include "src/protocol/sha256.h"
#include "tests/client/scripted_random.h"
#include "tests/packing/expect_words.h"
#include "tests/vectors.h"

namespace blindfuse {
namespace {

using ring::kDimension;
using vectors::json;

// The key that packs the rows of a query, as it is sent: the short one where there is one.
std::vector<uint8_t> row_key(const Manifest& manifest, const json& database) {
  const Layout& layout = manifest.layout;
  std::vector<std::string> texts = {database.at("s").get<std::string>(),
                                    database.at("e").get<std::string>()};
  for (const char* key : {"packing_key", "short_key"}) {
    if (!database.contains(key)) continue;
    for (const json& digit : database.at(key)) texts.push_back(digit.at("e").get<std::string>());
  }
  texts.push_back(database.at("e2").get<std::string>());
  const RingQueryMaker maker(
      ring::PublicPolynomials(manifest.seed), layout.row_count,
      RingQueryMaker::Second{layout.second_row_count(), layout.second->key_order});
  std::vector<uint8_t> sent(layout.query_bytes());
  std::vector<PreparedQuery> queries = maker.make(1, scripted(texts));
  std::move(queries.front()).encrypt(std::vector<KeyPlace>(1), layout, sent).take();
  const auto keys = std::span(sent).first(sent.size() - layout.second_query_bytes());
  const auto last = keys.last(ring::kKeyBytes);
  return {last.begin(), last.end()};
}

TEST(SecondLevelPackerVectors, PublicPolynomialsAreTheFrozenOnes) {
  const json file = vectors::read_vectors("second_level.json");
  const json& manifest = file.at("databases").at(0).at("manifest");
  const ring::PublicPolynomials polynomials(vectors::array_from_hex<32>(manifest.at("seed")));
  std::array<uint32_t, kDimension> values;
  const json& masks = file.at("public").at("short_key_masks");
  for (size_t k = 0; k < masks.size(); ++k) {
    polynomials.fill_short_key_mask(k, values);
    expect_words(values, masks.at(k));
  }
  for (const json& block : file.at("public").at("second_blocks")) {
    polynomials.fill_second_block(block.at("j").get<uint32_t>(), values);
    expect_words(values, block);
  }
}

// With and without a short key.
void expect_frozen_row(const json& database) {
  const Manifest manifest = parse_manifest(database.at("manifest").dump()).manifest;
  const Layout& layout = manifest.layout;
  const uint32_t key_order = layout.second->key_order;
  const ring::PublicPolynomials polynomials(manifest.seed);
  const PackingKeys key = PackingKeys::read(row_key(manifest, database));

  std::vector<uint32_t> words = database.at("b2").get<std::vector<uint32_t>>();
  for (uint32_t& word : words) word = ring::switch_to_q(word, layout.second->query_bits);
  const auto numbers = database.at("numbers").get<std::vector<int32_t>>();
  const size_t columns = layout.second_column_count();
  std::vector<int32_t> entries(layout.second_row_count() * columns);
  std::transform(numbers.begin(), numbers.end(), entries.begin(),
                 [&](int32_t number) { return number - (1 << (layout.response_bits - 1)); });

  std::array<uint32_t, kDimension> block, mask;
  polynomials.fill_second_block(0, block);
  std::array<uint32_t, kPackColumns> body;
  SecondLevelPacker(block, key_order,
                    key_order > 0 ? polynomials.short_key_masks() : polynomials.key_masks())
      .pack({key.words(), words, entries, columns, columns, mask, body});
  expect_words(mask, database.at("mask"));
  const auto expected = database.at("body").get<std::vector<uint32_t>>();
  EXPECT_EQ(std::vector(body.begin(), body.begin() + static_cast<std::ptrdiff_t>(columns)),
            expected);

  // As they are sent.
  const SecondLevel& second = *layout.second;
  std::vector<uint8_t> response(layout.response_bytes());
  const uint64_t mask_bytes = bit_sequence_bytes(kDimension, second.mask_bits);
  std::vector<uint32_t> lowered;
  for (const uint32_t word : mask) {
    lowered.push_back(restore_word(ring::switch_from_q(word, second.mask_bits), second.mask_bits));
  }
  write_bit_sequence(lowered, second.mask_bits, std::span(response).first(mask_bytes));
  lowered.clear();
  for (const uint32_t word : expected) {
    lowered.push_back(
        restore_word(ring::switch_from_q(word, second.response_bits), second.response_bits));
  }
  write_bit_sequence(lowered, second.response_bits, std::span(response).subspan(mask_bytes));
  EXPECT_EQ(response, vectors::from_hex(database.at("response")));
}

TEST(SecondLevelPackerVectors, MaskAndWordsAreTheFrozenOnes) {
  const json file = vectors::read_vectors("second_level.json");
  for (const json& database : file.at("databases")) {
    SCOPED_TRACE(database.at("name"));
    expect_frozen_row(database);
  }
}

}  // namespace
}  // namespace blindfuse
