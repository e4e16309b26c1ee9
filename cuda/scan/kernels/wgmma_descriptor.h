// The descriptor that tells wgmma where its operand lies in shared memory. The compiler for GPUs,
// and tests on the processor, make it with the same function.
#pragma once

#include <cstdint>

namespace blindfuse {

// PTX ISA, "Matrix descriptor" of wgmma: bits 0 to 13 have the address in shared memory, bits 16 to
// 29 the leading dimension's distance, bits 32 to 45 the stride dimension's, each divided by 16;
// bits 49 to 51 the base offset; bits 62 and 63 the swizzle.
//
// address: bytes, in the shared window. Rows of 128 bytes follow one another, and eight of
// them the next eight; the 16-byte chunks of each are exclusive-or-ed with the row's number modulo
// 8 (the 128-byte swizzle). So the leading dimension has no second part, and its distance is not
// looked at.
constexpr uint64_t wgmma_descriptor(uint32_t address) {
  constexpr uint64_t kLeading = 1;
  constexpr uint64_t kEightRows = 1024;
  constexpr uint64_t kSwizzle128 = 1;
  return (address & 0x3ffff) >> 4 | kLeading << 16 | (kEightRows >> 4) << 32 | kSwizzle128 << 62;
}

// The descriptor of the place this many bytes, a multiple of 16, after that address. Only its lower
// half changes, so a kernel computes no more than that.
constexpr uint64_t descriptor_after(uint64_t descriptor, uint32_t bytes) {
  return descriptor >> 32 << 32 | (static_cast<uint32_t>(descriptor) + (bytes >> 4));
}

}  // namespace blindfuse
