// The browser client's own ChaCha20 and SHA-256, compiled here, against OpenSSL's.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "client/secret_product.h"
#include "client/web/crypto/chacha20_lanes.h"
#include "client/web/crypto/sha256_portable.h"
#include "src/base/hex.h"
#include "src/protocol/public_matrix.h"
#include "src/protocol/sha256.h"
#include "tests/support.h"

namespace blindfuse {
namespace {

TEST(WebSha256, AgreesWithOpenSslHoweverTheBytesAreCut) {
  support::SeededRandom random(1);
  web::Sha256Portable hash;  // one for all: finish() starts again
  for (size_t size = 0; size < 300; ++size) {
    const std::vector<uint8_t> bytes = random.octets(size);
    for (std::span<const uint8_t> rest(bytes); !rest.empty();) {
      const auto piece = static_cast<size_t>(random.between(1, rest.size()));
      hash.update(rest.first(piece));
      rest = rest.subspan(piece);
    }
    EXPECT_EQ(encode_hex(hash.finish()), encode_hex(sha256(bytes))) << size;
  }
}

TEST(WebChaCha20, AgreesWithOpenSslAtEveryLength) {
  support::SeededRandom random(2);
  for (size_t count : {0, 1, 15, 16, 17, 63, 64, 65, 128, 1000, 64 * 1774}) {
    ChaChaKey key;
    for (uint8_t& byte : key) byte = random.byte();
    const uint64_t nonce = random.u64();
    std::vector<uint32_t> ours(count), theirs(count);
    web::keystream(key, nonce, ours);
    chacha20_keystream(key, nonce, theirs);
    EXPECT_EQ(ours, theirs) << count;
  }
}

TEST(WebChaCha20, ProductsAreThoseOfThePanel) {
  support::SeededRandom random(3);
  for (uint32_t dimension : {1u, 2u, 1774u}) {
    for (size_t count : {1, 2, 5}) {
      ChaChaKey key;
      for (uint8_t& byte : key) byte = random.byte();
      const uint64_t j = random.u32();
      std::vector<SecretFactor> factors;
      std::vector<web::MaskedSecret> masked;
      std::vector<std::vector<uint32_t>> ours, theirs;
      for (size_t i = 0; i < count; ++i) {
        std::vector<uint32_t> secret(dimension);
        for (uint32_t& word : secret) word = static_cast<uint32_t>(random.ternary());
        factors.emplace_back(secret);
        ours.push_back(random.words(kPanelRows));
      }
      theirs = ours;
      std::vector<uint32_t*> our_words, their_words;
      for (size_t i = 0; i < count; ++i) {
        masked.push_back({factors[i].flip(), factors[i].keep()});
        our_words.push_back(ours[i].data());
        their_words.push_back(theirs[i].data());
      }
      web::add_keystream_products(key, j, dimension, masked, our_words);
      for (size_t i = 0; i < count; ++i) {
        for (uint32_t& word : ours[i]) word += factors[i].minus_ones();
      }
      const PublicMatrix a(key, dimension);
      std::vector<uint32_t> panel(a.panel_words());
      a.fill_panel(j, panel);
      add_secret_products(panel, factors, their_words);
      EXPECT_EQ(ours, theirs) << dimension << " " << count;
    }
  }
}

}  // namespace
}  // namespace blindfuse
