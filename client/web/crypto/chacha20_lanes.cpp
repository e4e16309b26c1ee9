// Roofline: four blocks, 256 bytes, are 80 quarter rounds of 16 operations of 128 bits: 4
// additions, 4 exclusive ors, 2 shuffles, and 2 rotations of three operations; three of them are
// the same for all blocks of a panel. The product with one secret is 48 operations more.
#include "client/web/crypto/chacha20_lanes.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "client/secret.h"
#include "src/arithmetic/little_endian.h"

#ifdef __wasm_simd128__
#include <wasm_simd128.h>
#endif

namespace blindfuse::web {
namespace {

// A vector has one word of each of four blocks.
using Lanes [[gnu::vector_size(16)]] = uint32_t;
using Bytes [[gnu::vector_size(16)]] = uint8_t;

constexpr size_t kLanes = 4;
constexpr size_t kBlockWords = 16;
constexpr size_t kStepWords = kLanes * kBlockWords;
using State = std::array<Lanes, kBlockWords>;

// Rotates by whole bytes, with a shuffle. WebAssembly has two: with the indices in the instruction,
// of which V8 loads them again each time, and this one, whose indices it keeps in a register.
template <int kBytes>
[[gnu::always_inline]] inline Lanes rotate_bytes(Lanes v) {
  constexpr auto kFrom = [](int i) { return i / 4 * 4 + (i + 4 - kBytes) % 4; };
#ifdef __wasm_simd128__
  const v128_t from = wasm_i8x16_const(kFrom(0), kFrom(1), kFrom(2), kFrom(3), kFrom(4), kFrom(5),
                                       kFrom(6), kFrom(7), kFrom(8), kFrom(9), kFrom(10), kFrom(11),
                                       kFrom(12), kFrom(13), kFrom(14), kFrom(15));
  return reinterpret_cast<Lanes>(wasm_i8x16_swizzle(reinterpret_cast<v128_t>(v), from));
#else
  const Bytes b = reinterpret_cast<Bytes>(v);
  return reinterpret_cast<Lanes>(__builtin_shufflevector(
      b, b, kFrom(0), kFrom(1), kFrom(2), kFrom(3), kFrom(4), kFrom(5), kFrom(6), kFrom(7),
      kFrom(8), kFrom(9), kFrom(10), kFrom(11), kFrom(12), kFrom(13), kFrom(14), kFrom(15)));
#endif
}

template <int kBits>
[[gnu::always_inline]] inline Lanes rotate(Lanes v) {
  return (v << kBits) | (v >> (32 - kBits));
}

[[gnu::always_inline]] inline void quarter_round(Lanes& a, Lanes& b, Lanes& c, Lanes& d) {
  a += b, d = rotate_bytes<2>(d ^ a);
  c += d, b = rotate<12>(b ^ c);
  a += b, d = rotate_bytes<1>(d ^ a);
  c += d, b = rotate<7>(b ^ c);
}

// The state of blocks 0 to 3; word 12 is the counter.
State first_state(const ChaChaKey& key, uint64_t nonce) {
  State state{};
  constexpr std::array<uint32_t, 4> kConstants = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};
  for (size_t i = 0; i < 4; ++i) state[i] += kConstants[i];
  for (size_t i = 0; i < 8; ++i) state[4 + i] += load_le<uint32_t>(key.data() + 4 * i);
  state[12] = Lanes{0, 1, 2, 3};
  state[14] += static_cast<uint32_t>(nonce);
  state[15] += static_cast<uint32_t>(nonce >> 32);
  return state;
}

[[gnu::always_inline]] inline void diagonal_rounds(State& x) {
  quarter_round(x[0], x[5], x[10], x[15]);
  quarter_round(x[1], x[6], x[11], x[12]);
  quarter_round(x[2], x[7], x[8], x[13]);
  quarter_round(x[3], x[4], x[9], x[14]);
}

// The first state after those of the first quarter rounds that the counter has no part in.
State started(const State& first) {
  State x = first;
  quarter_round(x[1], x[5], x[9], x[13]);
  quarter_round(x[2], x[6], x[10], x[14]);
  quarter_round(x[3], x[7], x[11], x[15]);
  return x;
}

// The blocks whose counters are `counter`; its places in the two states are not looked at.
[[gnu::always_inline]] inline State blocks_of(const State& first, const State& begun,
                                              Lanes counter) {
  State x = begun;
  x[12] = counter;
  quarter_round(x[0], x[4], x[8], x[12]);
  diagonal_rounds(x);
#pragma GCC unroll 9
  for (int round = 1; round < 10; ++round) {
    quarter_round(x[0], x[4], x[8], x[12]);
    quarter_round(x[1], x[5], x[9], x[13]);
    quarter_round(x[2], x[6], x[10], x[14]);
    quarter_round(x[3], x[7], x[11], x[15]);
    diagonal_rounds(x);
  }
  for (size_t i = 0; i < kBlockWords; ++i) x[i] += i == 12 ? counter : first[i];
  return x;
}

// Word i of block b is lane b of vector i.
std::array<uint32_t, kStepWords> in_order(const State& blocks) {
  std::array<uint32_t, kStepWords> words;
  for (size_t i = 0; i < kBlockWords; ++i) {
    for (size_t b = 0; b < kLanes; ++b) words[b * kBlockWords + i] = blocks[i][b];
  }
  return words;
}

}  // namespace

void keystream(const ChaChaKey& key, uint64_t nonce, std::span<uint32_t> words) {
  const State first = first_state(key, nonce);
  const State begun = started(first);
  Lanes counter = first[12];
  for (size_t at = 0; at < words.size(); at += kStepWords) {
    const auto step = in_order(blocks_of(first, begun, counter));
    std::copy_n(step.begin(), std::min(kStepWords, words.size() - at), words.data() + at);
    counter += uint32_t{kLanes};
  }
}

void add_keystream_products(const ChaChaKey& key, uint64_t nonce, uint32_t dimension,
                            std::span<const MaskedSecret> secrets,
                            std::span<uint32_t* const> words) {
  const State first = first_state(key, nonce);
  const State begun = started(first);
  Lanes counter = first[12];
  SecretBuffer<State> sums(secrets.size());
  for (uint32_t k = 0; k < dimension; ++k) {
    const State x = blocks_of(first, begun, counter);
    counter += uint32_t{kLanes};
    for (size_t s = 0; s < secrets.size(); ++s) {
      const Lanes flip = Lanes{} + secrets[s].flip[k];
      const Lanes keep = Lanes{} + secrets[s].keep[k];
      for (size_t i = 0; i < kBlockWords; ++i) sums[s][i] += (x[i] ^ flip) & keep;
    }
  }
  for (size_t s = 0; s < secrets.size(); ++s) {
    auto sum = in_order(sums[s]);
    for (size_t c = 0; c < kStepWords; ++c) words[s][c] += sum[c];
    wipe_memory(sum.data(), sizeof(sum));
  }
}

}  // namespace blindfuse::web
