#include "client/decoder.h"

#include <blindfuse/errors.h>

#include <algorithm>

#include "client/secret_product.h"
#include "src/arithmetic/bit_sequence.h"
#include "src/arithmetic/packing_table.h"
#include "src/arithmetic/ring/modulus_switch.h"
#include "src/arithmetic/ring/ring_dimension.h"
#include "src/base/errors.h"

namespace blindfuse {
namespace {

using ring::kDimension;
using ring::Polynomial;

// The hint consists of the parts that a shard needs, one after another.
void check_hint(const Layout& layout, const HintParts& parts, std::span<const uint8_t> hint) {
  const uint64_t part_bytes = layout.hint_part_bytes();
  const uint64_t count = uint64_t{parts.last} - parts.first + 1;
  bool is_right = hint.size() == count * part_bytes;
  for (uint64_t at = 0; is_right && at < hint.size(); at += part_bytes) {
    is_right =
        is_bit_sequence(hint.subspan(at, part_bytes), layout.hint_part_words(), layout.hint_bits);
  }
  if (is_right) return;
  const bool packed = layout.mode() == Mode::kPacked;
  throw CacheError(
      (packed ? "the masks of a shard's packs are not " : "the hint of a shard is not ") +
      std::to_string(count * part_bytes) + " bytes whose unused bits are zero");
}

std::vector<uint8_t> decode_by_hint(DecodingSecret secret, const Layout& layout,
                                    std::span<const uint32_t> words,
                                    std::span<const uint8_t> hint) {
  const SecretBuffer<uint32_t> s = std::move(secret).take();
  const uint32_t n = layout.lwe->dimension;
  invariant(s.size() == n, "the secret has the database's dimension");
  const SecretFactor secret_factor(s.span());
  std::vector<uint32_t> column(n);
  std::vector<uint8_t> record(words.size());
  for (size_t c = 0; c < record.size(); ++c) {
    read_bit_sequence(hint, layout.hint_bits, uint64_t{c} * n, column);
    const uint32_t phase = words[c] - secret_product(secret_factor, column);
    const uint32_t half = 1u << (kPlaintextShift - 1);
    record[c] = static_cast<uint8_t>((phase + half) >> kPlaintextShift);
  }
  return record;
}

// Converts a restored word, whose number is in its upper bits, to the packing modulus.
uint32_t raised(uint32_t word, uint32_t bits) {
  return ring::switch_to_q(word >> (32 - bits), bits);
}

// Decodes the first level's words of the shard, which are exact, from a response with two levels.
SecretBuffer<uint32_t> first_level(const RingDecoder& decoder, const Layout& layout, uint32_t shard,
                                   std::span<const uint32_t> words) {
  const SecondLevel& second = *layout.second;
  const uint32_t bits = layout.response_bits;
  const size_t masks = layout.second_pack_count() * kDimension;
  SecretBuffer<uint32_t> found(layout.record_bytes());
  SecretBuffer<uint32_t> mask(kDimension), body(kPackColumns), phases(kPackColumns);
  const uint64_t begin = layout.second_place(shard).column;
  const uint64_t end = begin + found.size();
  for (uint32_t pack = 0; pack < layout.second_pack_count(); ++pack) {
    for (size_t i = 0; i < kDimension; ++i) {
      mask[i] = raised(words[pack * kDimension + i], second.mask_bits);
    }
    const uint64_t first = uint64_t{pack} * kPackColumns;
    const uint64_t from = std::clamp(first, begin, end);
    const uint64_t to = std::clamp(first + kPackColumns, begin, end);
    const auto own = words.subspan(masks + (from - begin), to - from);
    const size_t column = own.empty() ? 0 : from - first;
    for (size_t i = 0; i < own.size(); ++i) body[column + i] = raised(own[i], second.response_bits);
    decoder.phases(Polynomial(mask.span().data(), kDimension), body.span().first<kPackColumns>(),
                   phases.span().first<kPackColumns>());
    for (size_t i = 0; i < own.size(); ++i) {
      const uint32_t entry = ring::switch_from_q(phases[column + i], bits);
      // An entry is the number less half of all numbers, so that it is small.
      found[from - begin + i] = restore_word(entry + (1u << (bits - 1)), bits);
    }
  }
  return found;
}

std::vector<uint8_t> decode_by_masks(const RingDecoder& decoder, const Layout& layout,
                                     uint32_t shard, std::span<const uint32_t> words,
                                     std::span<const uint8_t> hint) {
  std::vector<uint8_t> record(words.size());
  SecretBuffer<uint32_t> mask(kDimension), body(kPackColumns);
  SecretBuffer<uint8_t> bytes(kPackColumns);  // bytes of other columns depend on the secret
  const uint64_t part_bytes = layout.hint_part_bytes();
  const uint64_t begin = uint64_t{shard} * words.size();  // among all columns, as below
  const uint64_t end = begin + words.size();
  const HintParts parts = layout.hint_parts_of(shard);
  // The loop includes packs that hold nothing of the record, so that its time says nothing of the
  // shard.
  for (uint64_t pack = parts.first; pack <= parts.last; ++pack) {
    const uint64_t first = pack * kPackColumns;
    const uint64_t from = std::clamp(first, begin, end);
    const uint64_t to = std::clamp(first + kPackColumns, begin, end);
    const size_t column = from == to ? 0 : from - first;
    read_bit_sequence(hint.first(part_bytes), layout.hint_bits, 0, mask.span());
    for (uint32_t& word : mask.span()) word = raised(word, layout.hint_bits);
    // The contents of other columns are unknown and are not looked at: a coefficient determines the
    // byte of its own column alone.
    for (uint64_t i = from; i < to; ++i) {
      body[column + (i - from)] = raised(words[i - begin], layout.response_bits);
    }
    decoder.decode(Polynomial(mask.span().data(), kDimension), body.span().first<kPackColumns>(),
                   bytes.span().first<kPackColumns>());
    const auto found = bytes.span().subspan(column, to - from);
    std::copy(found.begin(), found.end(), record.begin() + static_cast<ptrdiff_t>(from - begin));
    hint = hint.subspan(part_bytes);
  }
  return record;
}

// The bytes of the masks of a response with two levels, after which its words begin.
uint64_t second_masks_bytes(const Layout& layout) {
  return layout.second_pack_count() * bit_sequence_bytes(kDimension, layout.second->mask_bits);
}

bool is_second_level(const Layout& layout, std::span<const uint8_t> response) {
  if (response.size() != layout.response_bytes()) return false;
  const uint64_t mask_bytes = bit_sequence_bytes(kDimension, layout.second->mask_bits);
  for (uint64_t at = 0; at < second_masks_bytes(layout); at += mask_bytes) {
    if (!is_bit_sequence(response.subspan(at, mask_bytes), kDimension, layout.second->mask_bits)) {
      return false;
    }
  }
  return is_bit_sequence(response.subspan(second_masks_bytes(layout)), layout.second_column_count(),
                         layout.second->response_bits);
}

SecretBuffer<uint32_t> second_level_words(const Layout& layout, uint32_t shard,
                                          std::span<const uint8_t> response) {
  const SecondLevel& second = *layout.second;
  const uint64_t mask_bytes = bit_sequence_bytes(kDimension, second.mask_bits);
  const size_t masks = layout.second_pack_count() * kDimension;
  SecretBuffer<uint32_t> words(masks + layout.record_bytes());
  for (uint32_t pack = 0; pack < layout.second_pack_count(); ++pack) {
    read_bit_sequence(response.subspan(pack * mask_bytes, mask_bytes), second.mask_bits, 0,
                      words.span().subspan(pack * kDimension, kDimension));
  }
  const uint64_t first = layout.second_place(shard).column;
  read_bit_sequence(response.subspan(second_masks_bytes(layout)), second.response_bits, first,
                    words.span().subspan(masks));
  return words;
}

}  // namespace

SecretBuffer<uint32_t> words_of_shard(const Layout& layout, uint32_t shard,
                                      std::span<const uint8_t> response) {
  invariant(shard < layout.shard_count, "the shard exists");
  const bool is_right =
      layout.second ? is_second_level(layout, response)
                    : is_bit_sequence(response, layout.column_count(), layout.response_bits);
  if (!is_right) {
    throw ProtocolError("the server's response is not " + std::to_string(layout.response_bytes()) +
                        " bytes whose unused bits are zero");
  }
  if (layout.second) return second_level_words(layout, shard, response);
  SecretBuffer<uint32_t> words(layout.record_bytes());
  read_bit_sequence(response, layout.response_bits, uint64_t{shard} * words.size(), words.span());
  return words;
}

std::vector<uint8_t> decode(DecodingSecret secret, const Layout& layout, uint32_t shard,
                            std::span<const uint32_t> words, std::span<const uint8_t> hint) {
  invariant(shard < layout.shard_count, "the shard exists");
  const size_t masks = layout.second ? layout.second_pack_count() * kDimension : 0;
  invariant(words.size() == masks + layout.record_bytes(),
            "there is a word for every byte of the record");
  check_hint(layout, layout.hint_parts_of(shard), hint);
  if (layout.mode() == Mode::kPacked) {
    const RingDecoder decoder(std::move(secret));
    if (!layout.second) return decode_by_masks(decoder, layout, shard, words, hint);
    const SecretBuffer<uint32_t> first = first_level(decoder, layout, shard, words);
    return decode_by_masks(decoder, layout, shard, first.span(), hint);
  }
  return decode_by_hint(std::move(secret), layout, words, hint);
}

std::vector<uint8_t> decode(const RingDecoder& decoder, const Layout& layout, uint32_t shard,
                            std::span<const uint32_t> words, std::span<const uint8_t> hint) {
  invariant(shard < layout.shard_count, "the shard exists");
  invariant(layout.mode() == Mode::kPacked && !layout.second,
            "requests for several keys have packed responses of one level");
  invariant(words.size() == layout.record_bytes(), "there is a word for every byte of the record");
  check_hint(layout, layout.hint_parts_of(shard), hint);
  return decode_by_masks(decoder, layout, shard, words, hint);
}

}  // namespace blindfuse
