// The hint polynomials of packed responses (host/cpu/packing/hint_polynomials.h), computed by the
// dense product.
#pragma once

#include <cstdint>
#include <span>

#include "cuda/device/memory.h"
#include "cuda/scan/scanner.h"

namespace blindfuse {

// The hint polynomials of all columns of the matrix: word i * C + c is coefficient i of column c's
// polynomial, modulo 2^32. blocks: the R words of the public polynomials; R is a multiple of 2048.
// On the matrix's device, the current one. Throws ResourceError.
DeviceMemory<uint32_t> make_hint_words(Scanner& scanner, const DeviceMatrix& matrix,
                                       std::span<const uint32_t> blocks);
// The memory that this takes while it runs, including the words.
uint64_t hint_words_bytes(uint64_t row_count, uint64_t column_count);

}  // namespace blindfuse
