#include "src/arithmetic/record.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/reference_pir.h"
#include "tests/support.h"
#include "tests/trapped_bytes.h"
#include "tests/vectors.h"

namespace blindfuse {
namespace {

using support::SeededRandom;
using vectors::from_hex;
using vectors::json;
using vectors::string_from_hex;

using Bytes = std::vector<uint8_t>;

RecordFormat format_of(const json& f) {
  return {f.at("digest_bytes"), f.at("length_bytes"), f.at("value_bytes")};
}

Bytes encode_whole(const RecordFormat& format, const Bytes& digest, std::string_view value) {
  Bytes record(format.record_bytes(), 0xaa);
  encode_record(format, digest, value, 0, record);
  return record;
}

TEST(Record, AgreesWithTheVectors) {
  const json file = vectors::read_vectors("record.json");
  for (const json& f : file.at("formats")) {
    const RecordFormat format = format_of(f);
    const Bytes digest = from_hex(f.at("digest"));
    EXPECT_EQ(format.record_bytes(), f.at("record_bytes"));
    for (const json& good : f.at("good")) {
      const std::string value = string_from_hex(good.at("value"));
      const Bytes record = from_hex(good.at("record"));
      EXPECT_EQ(encode_whole(format, digest, value), record) << good;
      EXPECT_EQ(decode_record(format, digest, record), value) << good;
    }
    for (const json& bad : f.at("bad")) {
      EXPECT_EQ(decode_record(format, digest, from_hex(bad.at("record"))), std::nullopt) << bad;
    }
  }
}

RecordFormat random_format(SeededRandom& random) {
  RecordFormat format;
  format.digest_bytes = static_cast<uint32_t>(random.below(kDigestBytesMax + 1));
  format.length_bytes = random.one_of(std::vector<uint32_t>{0, 1, 2, 4});
  const uint64_t most = format.length_bytes == 1 ? 255 : random.below(2) == 0 ? 20 : 700;
  format.value_bytes = static_cast<uint32_t>(random.below(most + 1));
  return format;
}

std::string random_value(SeededRandom& random, const RecordFormat& format) {
  return random.bytes(format.length_bytes == 0 ? format.value_bytes
                                               : random.below(format.value_bytes + 1));
}

Bytes random_digest(SeededRandom& random, const RecordFormat& format) {
  Bytes digest(random.between(format.digest_bytes, kDigestBytesMax));
  for (uint8_t& byte : digest) byte = random.byte();
  return digest;
}

TEST(Record, AgreesWithTheReferenceForRandomFormats) {
  SeededRandom random(10);
  for (int i = 0; i < 2000; ++i) {
    const RecordFormat format = random_format(random);
    const std::string value = random_value(random, format);
    const Bytes digest = random_digest(random, format);
    const reference_pir::RecordFormat reference{format.digest_bytes, format.length_bytes,
                                                format.value_bytes};
    const Bytes used = reference_pir::slice(digest, 0, format.digest_bytes);
    const Bytes record = encode_whole(format, digest, value);
    ASSERT_EQ(record,
              reference_pir::encode_record(reference, used, reference_pir::bytes_of(value)));
    ASSERT_EQ(decode_record(format, digest, record), value);
  }
}

// A matrix is filled a block of columns at a time.
TEST(Record, EncodedInPiecesIsTheWhole) {
  SeededRandom random(11);
  for (int i = 0; i < 2000; ++i) {
    const RecordFormat format = random_format(random);
    const std::string value = random_value(random, format);
    const Bytes digest = random_digest(random, format);
    const Bytes whole = encode_whole(format, digest, value);
    Bytes pieces(whole.size(), 0xaa);
    for (uint32_t at = 0; at < pieces.size();) {
      const auto count = static_cast<uint32_t>(random.below(pieces.size() - at + 1));
      encode_record(format, digest, value, at, std::span(pieces).subspan(at, count));
      at += count;
    }
    ASSERT_EQ(pieces, whole);
    const auto from = static_cast<uint32_t>(random.below(whole.size() + 1));
    Bytes piece(random.below(whole.size() - from + 1));
    encode_record(format, digest, value, from, piece);
    ASSERT_EQ(piece, reference_pir::slice(whole, from, piece.size()));
  }
}

// What sums of rows give for a key that is not there: any bytes at all.
TEST(Record, DecodesRandomBytesAsTheReference) {
  SeededRandom random(12);
  size_t found = 0;
  for (int i = 0; i < 20'000; ++i) {
    RecordFormat format = random_format(random);
    format.digest_bytes = static_cast<uint32_t>(random.below(2));
    format.value_bytes = static_cast<uint32_t>(random.below(4));
    if (format.record_bytes() == 0) continue;
    Bytes record(format.record_bytes());
    for (uint8_t& byte : record) byte = static_cast<uint8_t>(random.below(4));
    const Bytes digest(1, static_cast<uint8_t>(random.below(4)));
    const auto value = decode_record(format, digest, record);
    const auto expected =
        reference_pir::decode_record({format.digest_bytes, format.length_bytes, format.value_bytes},
                                     reference_pir::slice(digest, 0, format.digest_bytes), record);
    ASSERT_EQ(value.has_value(), expected.has_value());
    if (value) {
      ASSERT_EQ(reference_pir::bytes_of(*value), *expected);
    }
    found += value.has_value();
  }
  EXPECT_GT(found, 1000u);
}

// How long decoding takes must not tell whether the key is there.
TEST(Record, IsReadWholeWhateverItsDigest) {
  const RecordFormat format{8, 2, 700};
  const Bytes digest(8, 1), other(8, 2);
  for (const size_t length : {0, 300, 700}) {
    const Bytes record = encode_whole(format, digest, std::string(length, 'v'));
    for (const size_t read : {8, 10, 11, 701, 709}) {
      SCOPED_TRACE(std::to_string(length) + ", " + std::to_string(read));
      const TrappedBytes trapped = TrappedBytes::from(read, record);
      EXPECT_DEATH_IF_SUPPORTED(decode_record(format, digest, trapped.span()), "");
      EXPECT_DEATH_IF_SUPPORTED(decode_record(format, other, trapped.span()), "");
    }
    EXPECT_EQ(decode_record(format, other, TrappedBytes::from(710, record).span()), std::nullopt);
  }
}

TEST(Record, FormatHasALengthOnlyWhereLengthsDiffer) {
  const auto length_bytes = [](uint32_t shortest, uint32_t longest) {
    const RecordFormat format = record_format_for(8, shortest, longest);
    EXPECT_EQ(format.digest_bytes, 8u);
    EXPECT_EQ(format.value_bytes, longest);
    return format.length_bytes;
  };
  EXPECT_EQ(length_bytes(0, 0), 0u);
  EXPECT_EQ(length_bytes(70'000, 70'000), 0u);
  EXPECT_EQ(length_bytes(0, 1), 1u);
  EXPECT_EQ(length_bytes(254, 255), 1u);
  EXPECT_EQ(length_bytes(255, 256), 2u);
  EXPECT_EQ(length_bytes(0, 65'535), 2u);
  EXPECT_EQ(length_bytes(0, 65'536), 4u);
  EXPECT_EQ(length_bytes(1, kValueBytesMax), 4u);
}

}  // namespace
}  // namespace blindfuse
