// The packing table of 1024 columns, with which their responses are packed into one polynomial. It
// holds the digits of every mask that the packing key takes from one automorphism of the secret to
// the next (docs/PARAMETERS.md, section 6). The table depends only on the matrix and on public
// seeds. So a build makes it, and every batch of queries reads the whole of it.
//
// The words are in the order in which they are read: 16 points (a cache line, if the table is
// aligned to 64 bytes) of every digit of every key switch, then the next 16 points, so that sums
// stay in registers. The files have the same order. A change of the order must give the files
// another ending (DatabaseDirectory::pack_name), since the hash of a table in the old order is
// still the expected one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "src/arithmetic/ring/automorphism.h"
#include "src/arithmetic/ring/gadget.h"
#include "src/arithmetic/ring/packing_key_format.h"
#include "src/arithmetic/ring/ring_dimension.h"

namespace blindfuse {

// The columns of a pack: as many as there are powers of 5.
inline constexpr size_t kPackColumns = ring::kOrbit;

// A key switch takes a mask under g(s), for the automorphism g = 5^i, to a mask under g'(s), with
// g' = 5^(i - 1). It multiplies the mask's digits with g' of the key. The switches are in the order
// in which they happen: down the powers of 5.
inline constexpr size_t kKeySwitches = ring::kOrbit - 1;

// g' of switch `number`.
constexpr ring::Automorphism key_switch_to(size_t number) { return {kKeySwitches - 1 - number}; }

inline constexpr size_t kPointsTogether = 16;
inline constexpr size_t kPointGroups = ring::kDimension / kPointsTogether;
inline constexpr size_t kGroupWords = kKeySwitches * ring::kDigits * kPointsTogether;
inline constexpr size_t kTableWords = kPointGroups * kGroupWords;  // 25.1 MB

// The index of the first of the 16 words of a key switch's digit in a group of points.
constexpr size_t table_place(size_t group, size_t number, size_t digit) {
  return (group * kKeySwitches + number) * ring::kDigits * kPointsTogether +
         digit * kPointsTogether;
}

using PackingTable = std::span<const uint32_t, kTableWords>;
using MutablePackingTable = std::span<uint32_t, kTableWords>;

inline constexpr uint64_t kTableBytes = uint64_t{4} * kTableWords;

// The kTableWords words of a table, aligned to 64 bytes. All users of a table share them.
using SharedPackingTable = std::shared_ptr<const uint32_t[]>;

}  // namespace blindfuse
