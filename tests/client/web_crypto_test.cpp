// The browser client's own ChaCha20 and SHA-256, compiled here, against the published examples and
// OpenSSL's.
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

std::string web_sha256(std::span<const uint8_t> bytes) {
  web::Sha256Portable hash;
  hash.update(bytes);
  return encode_hex(hash.finish());
}

// FIPS 180-4's examples.
TEST(WebSha256, GivesThePublishedDigests) {
  const auto of = [](const std::string& text) { return web_sha256(support::as_bytes(text)); };
  EXPECT_EQ(of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(of(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

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

// RFC 8439, section 2.3.2's key, under a nonce whose first 4 bytes are zero (appendix A.1, vectors
// 1, 2 and 5, have such nonces).
TEST(WebChaCha20, GivesThePublishedKeystreams) {
  const auto bytes_of = [](const ChaChaKey& key, uint64_t nonce) {
    std::vector<uint32_t> words(32);
    web::keystream(key, nonce, words);
    return encode_hex({reinterpret_cast<const uint8_t*>(words.data()), words.size() * 4});
  };
  EXPECT_EQ(bytes_of({}, 0),
            "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
            "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586"
            "9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed"
            "29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f");
  EXPECT_EQ(bytes_of({}, uint64_t{2} << 56).substr(0, 128),
            "c2c64d378cd536374ae204b9ef933fcd1a8b2288b3dfa49672ab765b54ee27c7"
            "8a970e0e955c14f3a88e741b97c286f75f8fc299e8148362fa198a39531bed6d");
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
