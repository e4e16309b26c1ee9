#include "host/engines/kernel_checks.h"

#ifdef BLINDFUSE_CUDA_ENGINE

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string_view>
#include <utility>

#include "cuda/cuda_engine_maker.h"
#include "cuda/device/device_info.h"
#include "host/cpu/cpu_engine.h"
#include "src/arithmetic/bit_sequence.h"
#include "src/arithmetic/packing_table.h"
#include "src/arithmetic/ring/prime_field.h"
#include "src/arithmetic/ring/ring_dimension.h"
#include "src/arithmetic/second_level_spec.h"

namespace blindfuse {
namespace {

using ring::kDimension;

// The numbers are the same every time, so that a failure can be repeated.
class Numbers {
 public:
  uint64_t next() { return engine_(); }
  std::vector<uint8_t> octets(size_t count) {
    std::vector<uint64_t> words(count / sizeof(uint64_t) + 1);
    for (uint64_t& word : words) word = engine_();
    const auto* const first = reinterpret_cast<const uint8_t*>(words.data());
    return {first, first + count};
  }

 private:
  std::mt19937_64 engine_{20'240'527};
};

// Compares `count` sequences of words with this many bits: says in how many, and in how many words,
// they differ, and where first.
std::string difference(std::span<const uint8_t> found, std::span<const uint8_t> expected,
                       size_t count, unsigned bits, const char* what) {
  if (found.size() != expected.size()) return std::string("no ") + what;
  const size_t each = expected.size() / count;
  const size_t words = each * 8 / bits;
  std::vector<uint32_t> is(words), should_be(words);
  size_t wrong = 0, wrong_words = 0;
  std::string first;
  for (size_t i = 0; i < count; ++i) {
    const auto of = [&](std::span<const uint8_t> all) { return all.subspan(i * each, each); };
    if (std::ranges::equal(of(found), of(expected))) continue;
    ++wrong;
    read_bit_sequence(of(found), bits, 0, is);
    read_bit_sequence(of(expected), bits, 0, should_be);
    for (size_t word = 0; word < words; ++word) {
      if (is[word] == should_be[word]) continue;
      ++wrong_words;
      if (!first.empty()) continue;
      first = "first word " + std::to_string(word) + " of number " + std::to_string(i) + ": " +
              std::to_string(is[word]) + " instead of " + std::to_string(should_be[word]);
    }
  }
  if (wrong == 0) return "";
  return std::to_string(wrong) + " of " + std::to_string(count) + " " + what +
         " differ from the CPU's, in " + std::to_string(wrong_words) + " of " +
         std::to_string(count * words) + " words, " + first;
}

std::vector<uint8_t> answers(AnswerPipeline& pipeline, const std::vector<uint8_t>& queries,
                             size_t count) {
  const size_t each = queries.size() / count;
  for (size_t i = 0; i < count; ++i) pipeline.put(i, std::span(queries).subspan(i * each, each));
  pipeline.begin(0, count);
  const auto responses = pipeline.finish();
  return {responses.begin(), responses.end()};
}

std::unique_ptr<Engine> filled(const EngineMaker& maker, uint64_t rows, uint64_t columns,
                               std::span<const uint8_t> matrix) {
  auto engine = maker.make_engine(rows, columns);
  engine->set_columns(0, matrix);
  engine->seal();
  return engine;
}

std::unique_ptr<EngineMaker> on_device(std::string_view kernel, int device) {
  std::vector<std::string> kernels;
  if (!kernel.empty()) kernels.emplace_back(kernel);
  return make_cuda_engine_maker(std::move(kernels), device);
}
std::unique_ptr<EngineMaker> on_cpu() { return make_cpu_engine_maker("", 1); }

// Neither is a multiple of a step of rows or of a tile of columns.
constexpr uint64_t kRows = 1'300, kColumns = 150;

// The size of a matrix of which each block of a kernel takes more steps of rows than its rings have
// stages: 16,512 x 2,100 on 132 multiprocessors.
uint64_t long_columns(int device) { return 16 * uint64_t{cuda_multiprocessor_count(device)} - 12; }
uint64_t long_rows(int device) {
  return 128 * std::min<uint64_t>(129, 17 * uint64_t{cuda_multiprocessor_count(device)});
}

std::string check_scan_of(const EngineMaker& maker, uint64_t rows, std::span<const uint8_t> matrix,
                          WireBits bits, const std::vector<uint8_t>& queries, size_t count) {
  const auto answers_by = [&](const EngineMaker& engines) {
    const auto engine = filled(engines, rows, matrix.size() / rows, matrix);
    return answers(*engine->make_answer_pipeline(bits, count, count), queries, count);
  };
  return difference(answers_by(maker), answers_by(*on_cpu()), count, bits.response, "responses");
}

std::string check_scan(std::string_view kernel, int device, size_t count) {
  const auto maker = on_device(kernel, device);
  Numbers numbers;
  const auto matrix = numbers.octets(kRows * kColumns);
  for (const WireBits bits : {WireBits{32, 32}, WireBits{26, 11}}) {
    const auto queries = numbers.octets(count * bit_sequence_bytes(kRows, bits.query));
    const std::string wrong = check_scan_of(*maker, kRows, matrix, bits, queries, count);
    if (!wrong.empty()) return wrong;
  }
  const uint64_t rows = long_rows(device);
  const std::string wrong =
      check_scan_of(*maker, rows, numbers.octets(rows * long_columns(device)), {32, 32},
                    numbers.octets(count * rows * sizeof(uint32_t)), count);
  if (!wrong.empty()) return wrong;
  // The words give the largest sums that there are: bytes of -128 times limbs of -1 and 127, as
  // 0xff7f7f7f has.
  const std::vector<uint8_t> least(kRows * kColumns, 0x80);
  std::vector<uint8_t> queries(count * kRows * sizeof(uint32_t), 0x7f);
  for (size_t i = 3; i < queries.size(); i += 4) queries[i] = 0xff;
  return check_scan_of(*maker, kRows, least, {32, 32}, queries, count);
}

// Checks the products of one query as those of clients' queries are checked. Throws where the check
// does not agree with them.
std::string check_weighing(std::string_view kernel, int device) {
  constexpr WireBits kBits{32, 32};
  Numbers numbers;
  const auto matrix = numbers.octets(kRows * kColumns);
  Canary canary;
  for (uint64_t r = 0; r < kRows; ++r)
    canary.words.push_back(static_cast<uint32_t>(numbers.next()));
  for (uint64_t c = 0; c < kColumns; ++c) {
    canary.weights.push_back(static_cast<uint32_t>(numbers.next()) | 1);
  }
  canary.products.resize(kColumns);
  filled(*on_cpu(), kRows, kColumns, matrix)
      ->multiply({canary.words.data(), 1, kRows}, {0, kRows},
                 {canary.products.data(), 1, kColumns});
  const auto engine = filled(*on_device(kernel, device), kRows, kColumns, matrix);
  engine->check_kernels(canary, 1);
  std::vector<uint8_t> query(bit_sequence_bytes(kRows, kBits.query));
  write_bit_sequence(canary.words, kBits.query, query);
  std::vector<uint8_t> expected(bit_sequence_bytes(kColumns, kBits.response));
  write_bit_sequence(canary.products, kBits.response, expected);
  return difference(answers(*engine->make_answer_pipeline(kBits, 1, 1), query, 1), expected, 1,
                    kBits.response, "checked responses");
}

uint32_t below_modulus(Numbers& numbers) {
  return static_cast<uint32_t>((numbers.next() >> 32) * ring::kPackingModulus >> 32);
}

// All packs share one table: they differ by their products.
SharedPackingTable random_table(Numbers& numbers) {
  const std::shared_ptr<uint32_t[]> words(new uint32_t[kTableWords]);
  for (size_t i = 0; i < kTableWords; ++i) words[i] = below_modulus(numbers);
  return {words, words.get()};
}

void append_key(Numbers& numbers, std::vector<uint8_t>& query) {
  for (size_t word = 0; word < ring::kKeyWords; ++word) {
    const uint32_t key = below_modulus(numbers);
    for (unsigned byte = 0; byte < 4; ++byte) query.push_back(uint8_t(key >> 8 * byte));
  }
}

// second: describes responses with a second level, without its polynomials; its words have 11 bits.
std::string check_packing(std::string_view kernel, int device, uint64_t packs, size_t count,
                          std::optional<SecondLevelSpec> second = std::nullopt) {
  constexpr uint64_t kFewRows = 130;
  constexpr WireBits kBits{26, 11};
  const uint64_t columns = packs * kPackColumns - 700;
  Numbers numbers;
  std::vector<uint32_t> blocks, key_masks(ring::kKeyWords);
  if (second) {
    blocks.resize(second->block_count() * kDimension);
    for (uint32_t& word : blocks) word = below_modulus(numbers);
    for (uint32_t& word : key_masks) word = below_modulus(numbers);
    second->blocks = blocks;
    second->key_masks = key_masks;
  }
  const auto matrix = numbers.octets(kFewRows * columns);
  const std::vector<SharedPackingTable> tables(packs, random_table(numbers));
  std::vector<uint8_t> queries;
  for (size_t i = 0; i < count; ++i) {
    const auto words = numbers.octets(bit_sequence_bytes(kFewRows, kBits.query));
    queries.insert(queries.end(), words.begin(), words.end());
    append_key(numbers, queries);
    if (!second) continue;
    if (second->key_order > 0) append_key(numbers, queries);
    const auto rows = numbers.octets(bit_sequence_bytes(second->row_count, second->query_bits));
    queries.insert(queries.end(), rows.begin(), rows.end());
  }
  const auto answers_by = [&](const EngineMaker& engines) {
    const auto engine = filled(engines, kFewRows, columns, matrix);
    return answers(*engine->make_packed_answer_pipeline(kBits, tables, count, count,
                                                        second ? &*second : nullptr),
                   queries, count);
  };
  // A response with a second level has numbers of several sizes: it is compared by bytes.
  return difference(answers_by(*on_device(kernel, device)), answers_by(*on_cpu()), count,
                    second ? 8 : kBits.response, "responses");
}

struct SecondLevelCheck {
  std::string name;
  uint64_t packs;  // of the first level
  SecondLevelSpec spec;
};

// A short key; rows of two packs; and rows of two blocks. None is full, and the last words of the
// matrix are not there.
std::vector<SecondLevelCheck> second_level_checks() {
  const auto spec = [](uint32_t rows, uint32_t columns, uint32_t key_order) {
    SecondLevelSpec made{.row_count = rows, .column_count = columns};
    made.word_bits = 11;
    made.query_bits = 25;
    made.mask_bits = 19;
    made.response_bits = 13;
    made.key_order = key_order;
    return made;
  };
  return {{"second level, short key", 1, spec(6, 60, 64)},
          {"second level, 2 packs", 3, spec(3, 1'100, 0)},
          {"second level, 2 blocks", 1, spec(2'100, 2, 2)}};
}

std::string check_tables(int device) {
  constexpr uint64_t kPackRows = kDimension;
  Numbers numbers;
  std::vector<uint32_t> blocks(kPackRows), key_masks(ring::kKeyWords);
  for (uint32_t& word : blocks) word = static_cast<uint32_t>(numbers.next());
  for (uint32_t& word : key_masks) word = below_modulus(numbers);
  // Only a few columns are set. The others are zero.
  constexpr uint64_t kSet = 5;
  const auto columns = numbers.octets(kSet * kPackRows);
  const auto table_by = [&](const EngineMaker& engines) {
    const auto maker = engines.make_pack_maker(blocks, key_masks, kPackRows, kPackColumns);
    maker->set_columns(0, columns);
    maker->seal();
    std::vector<uint32_t> words(kTableWords + kDimension);
    maker->make(0, MutablePackingTable(words.data(), kTableWords),
                ring::MutablePolynomial(words.data() + kTableWords, kDimension));
    return words;
  };
  const auto found = table_by(*on_device("", device));
  const auto expected = table_by(*on_cpu());
  const auto bytes = [](const std::vector<uint32_t>& words) {
    return std::span(reinterpret_cast<const uint8_t*>(words.data()), words.size() * 4);
  };
  return difference(bytes(found), bytes(expected), 1, 32, "tables with their masks");
}

// Each with the tiles that its kernels are compiled for, and one query more.
std::vector<size_t> batches_of(std::string_view kernel) {
  if (kernel == "dp4a") return {1, 2, 3, 4};
  if (kernel == "mma") return {4, 8, 16, 32, 33};
  if (kernel == "wgmma" || kernel == "wgmma-tma") return {8, 16, 32, 64, 65};
  return {5};
}

}  // namespace

std::string why_no_device(int device) { return why_no_cuda_device(device); }
bool is_device_absent(int device) { return is_cuda_device_absent(device); }
int device_count() { return cuda_device_count(); }
std::string device_description(int device) { return cuda_device_description(device); }

std::vector<KernelCheck> kernel_checks(int device) {
  use_cuda_device(device);
  std::vector<KernelCheck> checks;
  for (const std::string_view kernel : cuda_kernel_names()) {
    for (const size_t count : batches_of(kernel)) {
      checks.push_back({std::string(kernel),
                        std::to_string(count) + (count == 1 ? " query" : " queries"),
                        [=] { load_cuda_kernels(device, ""); },
                        [=] { return check_scan(kernel, device, count); }});
    }
    checks.push_back({std::string(kernel), "products", [=] { load_cuda_kernels(device, ""); },
                      [=] { return check_weighing(kernel, device); }});
  }
  // The sums over packing tables are made by the kernels of scans, with an end of their own.
  const auto add_packing = [&](std::string_view kernel, const std::string& what, uint64_t packs,
                               size_t count) {
    checks.push_back({"packing", std::string(kernel) + ", " + what,
                      [=] { load_cuda_kernels(device, "packing"); },
                      [=] { return check_packing(kernel, device, packs, count); }});
  };
  for (const std::string_view kernel : cuda_kernel_names()) {
    if (kernel != "dp4a" && kernel != "mma" && kernel != "wgmma") continue;
    for (const size_t count : batches_of(kernel)) {
      add_packing(kernel, std::to_string(count) + (count == 1 ? " query" : " queries"), 1, count);
    }
    add_packing(kernel, "3 packs", 3, 2);
  }
  for (const SecondLevelCheck& each : second_level_checks()) {
    checks.push_back({"packing", each.name, [=] { load_cuda_kernels(device, "packing"); },
                      [=] { return check_packing("", device, each.packs, 2, each.spec); }});
  }
  checks.push_back({"tables", "1 pack", [=] { load_cuda_kernels(device, "tables"); },
                    [=] { return check_tables(device); }});
  return checks;
}

}  // namespace blindfuse

#else

namespace blindfuse {

std::string why_no_device(int) { return "this program was built without nvcc"; }
bool is_device_absent(int) { return true; }
int device_count() { return 0; }
std::string device_description(int) { return ""; }
std::vector<KernelCheck> kernel_checks(int) { return {}; }

}  // namespace blindfuse

#endif
