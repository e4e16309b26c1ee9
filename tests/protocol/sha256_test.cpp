#include "src/protocol/sha256.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/support.h"
#include "tests/vectors.h"

namespace blindfuse {
namespace {

using support::as_bytes;
using vectors::to_hex;

struct Example {
  std::string text;
  std::string digest;
};

// NIST's examples for FIPS 180-4: no block, one, two, and very many.
const std::vector<Example>& examples() {
  static const std::vector<Example> all = {
      {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
      {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmno"
       "ijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
       "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
      {std::string(1'000'000, 'a'),
       "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
  };
  return all;
}

TEST(Sha256, HashesTheExamplesOfTheStandard) {
  for (const Example& example : examples()) {
    EXPECT_EQ(to_hex(sha256(as_bytes(example.text))), example.digest);
  }
}

TEST(Sha256, HashesPiecesAsTheWhole) {
  for (const Example& example : examples()) {
    Sha256 hash;  // used again after finish()
    for (const size_t piece : {1, 63, 64, 65, 1000}) {
      for (size_t at = 0; at < example.text.size(); at += piece) {
        hash.update(std::string_view(example.text).substr(at, piece));
      }
      EXPECT_EQ(to_hex(hash.finish()), example.digest);
    }
  }
}

TEST(Sha256, MovesWithWhatItHasHashed) {
  const std::string_view text = examples()[2].text;
  Sha256 first;
  first.update(text.substr(0, 10));
  Sha256 second(std::move(first));
  second.update(text.substr(10, 20));
  Sha256 third;
  third.update("something else");
  third = std::move(second);
  third.update(text.substr(30));
  EXPECT_EQ(to_hex(third.finish()), examples()[2].digest);
}

}  // namespace
}  // namespace blindfuse
