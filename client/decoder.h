// Decodes a response to the record of the key that was asked for (docs/PROTOCOL.md, sections 11, 18
// and 20).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "client/prepared_query.h"
#include "client/ring_query.h"
#include "client/secret.h"
#include "src/arithmetic/layout.h"

namespace blindfuse {

// The words of a response that suffice to decode the record of shard `shard` (below S): W words, in
// its columns; with a second level also, before them, the coefficients of the response's masks.
// Throws ProtocolError if the response is not response_bytes long or has unused bits set.
SecretBuffer<uint32_t> words_of_shard(const Layout& layout, uint32_t shard,
                                      std::span<const uint8_t> response);

// The W bytes of the record, decoded from what words_of_shard() has read and the parts of the hint
// that the shard needs (Layout::hint_parts_of), bit sequences, one after another.
//
// Consumes the secret. The time does not depend on the secret, the shard or the data. Throws
// CacheError if a part of the hint is not hint_part_bytes long or has unused bits set. Throws
// std::logic_error if the secret was used before.
std::vector<uint8_t> decode(DecodingSecret secret, const Layout& layout, uint32_t shard,
                            std::span<const uint32_t> words, std::span<const uint8_t> hint);

// Decodes one of the records of a response whose request is for several keys. The decoder has the
// secret of the request, and serves all of its records.
std::vector<uint8_t> decode(const RingDecoder& decoder, const Layout& layout, uint32_t shard,
                            std::span<const uint32_t> words, std::span<const uint8_t> hint);

}  // namespace blindfuse
