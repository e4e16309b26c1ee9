// The probability that a look-up decodes wrongly, for any data (docs/PARAMETERS.md derives each
// line).
//
// A byte decodes when |E1 + E2 + E3| < 2^23, with
//   E1 = sum over rows of e_r d_r, |d_r| <= 128; e_r the error of the query plus the rounding of
//   its word, E2 the rounding of the response word, at most 2^(31 - response_bits), E3 = sum over
//   k of s_k times the rounding of the hint word.
// All random terms are sub-Gaussian with their own variance as proxy, so E1 + E3 is too, and its
// tail is at most 2 exp(-t^2 / (2 variance)). The W bytes of a record are taken by the union bound.
//
// Packed responses have the same terms, with the mask's words in place of the hint's and d = n =
// 2048 secret numbers, and that of packing.
#pragma once

#include <cstdint>

namespace blindfuse {

// A layout whose failure bound is above 2^-40 is refused.
inline constexpr double kFailureLog2Max = -40.0;

struct NoiseBudget {
  double query_variance = 0;  // of E1, for the worst data
  double hint_variance = 0;   // of E3
  double packing_variance = 0;
  double response_bound = 0;  // of |E2|
  double log2_failure = 0;    // of the probability that any byte of a record is wrong; at most 0
};

// Variance of the error of round_word to `bits` bits on a uniform word: (4^k + 2) / 12 with k = 32
// - bits, 0 for k = 0.
double rounding_variance(uint32_t bits);

// Variance of what packing a response adds to each of its words, in the words' units
// (docs/PARAMETERS.md, section 6): the errors of the packing key times the digits of 1023
// switches, and what the digits leave out times the secret; a tenth more than that, for the worst
// column.
double packing_variance();
// The variance after that many switches, as the second level has where its key is short.
double packing_variance(uint32_t key_switches);

// row_count R >= 1, dimension n, record_bytes W >= 1; the bit counts as in the manifest; packing:
// 0, or packing_variance(); error_max: errors are uniform on -error_max..error_max.
NoiseBudget noise_budget(uint64_t row_count, uint32_t dimension, uint32_t record_bytes,
                         uint32_t query_bits, uint32_t response_bits, uint32_t hint_bits,
                         double packing = 0, uint32_t error_max = 1);

// The noise of the second level, whose words must be exact (docs/PARAMETERS.md, section 7). With
// rb-bit words v, |v - 2^(rb-1)| <= 2^(rb-1), a word of the asked row is right when |F1 + F2 + F3 +
// F4| < 2^(31 - rb), with
//   F1 = sum over the rows of e_r (v_r - 2^(rb-1)), e_r the query's error and the rounding of its
//   number, F2 the rounding of the response, F3 = sum over k of s_k times the rounding of the mask,
//   F4 that of packing.
struct SecondNoise {
  double query_variance = 0;    // of F1, for the worst words
  double mask_variance = 0;     // of F3
  double packing_variance = 0;  // of F4
  double response_bound = 0;    // of |F2|
  double log2_failure = 0;      // of the probability that any word of a record is wrong; at most 0
};

// row_count: rows of the matrix of words. word_bits: rb. The other bit counts are the second
// level's. key_switches: of a chain.
SecondNoise second_noise(uint64_t row_count, uint32_t record_bytes, uint32_t word_bits,
                         uint32_t query_bits, uint32_t mask_bits, uint32_t response_bits,
                         uint32_t key_switches);

// log2(2^a + 2^b), at most 0: the probability that either event happens.
double log2_of_either(double a, double b);

}  // namespace blindfuse
