// Every engine of this machine against a plain loop, bit for bit: a new engine joins by being one
// of engine_names().
//
// The shapes straddle the edges of every tile that a kernel may have. Memory is laid out against
// the kernels: nothing is aligned beyond its type, queries and products end with the last word that
// may be used (AddressSanitizer sees one more), gaps of a stride hold garbage that must neither
// count nor change, and products add to what is there.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "host/cpu/cpu_engine.h"
#include "host/cpu/scan/multiply_kernel.h"
#include "host/engines/engine_factory.h"
#include "tests/engine/engines_under_test.h"
#include "tests/support.h"

namespace blindfuse {
namespace {

using support::SeededRandom;

constexpr uint32_t kPoison = 0xdeadbeef;
struct Shape {
  uint64_t rows = 1;
  uint64_t columns = 1;
  size_t batch = 1;
  RowRange range{0, 1};
  unsigned threads = 1;
  size_t query_gap = 0;    // words between one query and the next
  size_t product_gap = 0;  // words between one product and the next
  size_t offset = 0;       // words before the first of each
  uint64_t slab = 0;       // columns of a slab, where engines have slabs; 0: as they like
  std::optional<ColumnRange> some = {};  // the columns that are multiplied, if not all

  ColumnRange multiplied() const { return some.value_or(ColumnRange{0, columns}); }
  size_t query_stride() const { return range.size() + query_gap; }
  size_t product_stride() const { return multiplied().count + product_gap; }
};

std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  return out << "rows " << shape.range.first << ".." << shape.range.last << " of " << shape.rows
             << ", columns " << shape.columns << ", batch " << shape.batch << ", threads "
             << shape.threads << ", gaps " << shape.query_gap << ' ' << shape.product_gap
             << ", offset " << shape.offset << ", slabs of " << shape.slab << ", "
             << shape.multiplied().count << " columns from " << shape.multiplied().first;
}

// Memory as a caller may have it, and the products that are right.
class Problem {
 public:
  explicit Problem(const Shape& shape) : shape_(shape) {
    bytes_.resize(shape.rows * shape.columns);
    const size_t queries =
        shape.batch == 0 ? 0 : shape.query_stride() * (shape.batch - 1) + shape.range.size();
    words_.resize(shape.offset + queries);
    const size_t products =
        shape.batch == 0 ? 0
                         : shape.product_stride() * (shape.batch - 1) + shape.multiplied().count;
    products_.assign(shape.offset + products, kPoison);
  }

  void fill(SeededRandom& random) {
    for (uint8_t& byte : bytes_) byte = random.byte();
    for (uint32_t& word : words_) word = random.u32();
    for (size_t b = 0; b < shape_.batch; ++b) {
      for (uint64_t c = 0; c < shape_.multiplied().count; ++c) {
        products_[product_at(b, c)] = random.u32();
      }
    }
  }

  void fill_with(int8_t byte, uint32_t word) {
    std::ranges::fill(bytes_, static_cast<uint8_t>(byte));
    std::ranges::fill(words_, word);
  }

  // products += queries * matrix, the slow way.
  std::vector<uint32_t> expected() const {
    std::vector<uint32_t> result = products_;
    for (size_t b = 0; b < shape_.batch; ++b) {
      const uint32_t* query = words_.data() + shape_.offset + b * shape_.query_stride();
      for (uint64_t c = 0; c < shape_.multiplied().count; ++c) {
        const uint64_t column_at = (shape_.multiplied().first + c) * shape_.rows;
        const uint8_t* column = bytes_.data() + column_at + shape_.range.first;
        uint32_t sum = 0;
        for (uint64_t r = 0; r < shape_.range.size(); ++r) {
          sum += query[r] * static_cast<uint32_t>(int32_t{static_cast<int8_t>(column[r])});
        }
        result[product_at(b, c)] += sum;
      }
    }
    return result;
  }

  std::vector<uint32_t> computed(Engine& engine) const {
    std::vector<uint32_t> result = products_;
    const QueryBatch queries{words_.data() + shape_.offset, shape_.batch, shape_.query_stride()};
    const ProductBatch products{result.data() + shape_.offset, shape_.batch,
                                shape_.product_stride()};
    if (shape_.some) {
      engine.multiply_columns(queries, shape_.range, *shape_.some, products);
    } else {
      engine.multiply(queries, shape_.range, products);
    }
    return result;
  }

  // The bytes of these columns.
  std::span<const uint8_t> columns(uint64_t first, uint64_t count) const {
    return std::span(bytes_).subspan(first * shape_.rows, count * shape_.rows);
  }
  void take_columns(uint64_t first, uint64_t count, const Problem& other) {
    std::ranges::copy(other.columns(first, count),
                      bytes_.begin() + static_cast<ptrdiff_t>(first * shape_.rows));
  }

  std::unique_ptr<Engine> empty_engine(const std::string& name, unsigned thread_count) const {
    if (shape_.slab == 0 || !name.starts_with("cpu")) {
      return make_engine(name, shape_.rows, shape_.columns, thread_count);
    }
    return make_cpu_engine(choose_kernel(name == "cpu" ? "" : name.substr(4)),
                           std::make_shared<Matrix>(shape_.rows, shape_.columns, shape_.slab),
                           thread_count);
  }

  std::unique_ptr<Engine> engine(const std::string& name, unsigned thread_count) const {
    auto engine = empty_engine(name, thread_count);
    engine->set_columns(0, bytes_);
    engine->seal();
    return engine;
  }

 private:
  size_t product_at(size_t b, uint64_t c) const {
    return shape_.offset + b * shape_.product_stride() + c;
  }

  Shape shape_;
  std::vector<uint8_t> bytes_;  // the matrix, column after column
  std::vector<uint32_t> words_;
  std::vector<uint32_t> products_;
};

class EngineConformance : public testing::TestWithParam<std::string> {
 protected:
  void expect_right(const Shape& shape, const Problem& problem) {
    const auto engine = problem.engine(GetParam(), shape.threads);
    // Compared as a whole first: printing two long vectors does not help.
    const std::vector<uint32_t> computed = problem.computed(*engine);
    const std::vector<uint32_t> expected = problem.expected();
    const auto [at, other] = std::ranges::mismatch(computed, expected);
    ASSERT_TRUE(at == computed.end())
        << GetParam() << ", " << shape << ": word " << at - computed.begin()
        << " of the products is " << *at << " instead of " << *other;
  }

  void expect_right_on_random(const Shape& shape, SeededRandom& random) {
    Problem problem(shape);
    problem.fill(random);
    expect_right(shape, problem);
  }
};

INSTANTIATE_TEST_SUITE_P(Engines, EngineConformance, testing::ValuesIn(engine_names()),
                         support::name_of_test);

// Groups of 64 rows, runs of 1024, blocks of 3072.
const std::vector<uint64_t> kRowCounts = {1,   15,  16,   17,   63,   64,   65,
                                          135, 200, 1000, 1088, 3071, 3073, 4097};
const std::vector<uint64_t> kColumnCounts = {1, 2, 3, 4, 5, 6, 7, 8, 9, 31, 33};
const std::vector<uint64_t> kTilesOfColumns = {12, 13, 24, 32, 47, 48, 49, 61, 64, 65, 97, 130};
const std::vector<size_t> kBatches = {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17, 61, 64, 65};

// All rows with all columns, and all columns with all batches, on one thread.
TEST_P(EngineConformance, MultipliesEveryShape) {
  SeededRandom random(100);
  for (const uint64_t columns : kColumnCounts) {
    for (const uint64_t rows : kRowCounts) {
      expect_right_on_random({rows, columns, random.between(1, 5), {0, rows}}, random);
    }
    for (const size_t batch : kBatches) {
      const uint64_t rows = random.between(60, 70);
      expect_right_on_random({rows, columns, batch, {0, rows}}, random);
    }
  }
}

// Ranges of rows and of columns that begin and end anywhere, also within tiles and slabs, or hold
// one or none; gaps, offsets and threads. Odd firsts and lasts lie around the panels of 64 that a
// hint is made of.
TEST_P(EngineConformance, MultipliesSampledShapesWithGapsRangesAndThreads) {
  SeededRandom random(101);
  const std::vector<uint64_t> slabs = {0, 0, 6, 12, 30};
  const auto part_of = [&](uint64_t whole) {
    const uint64_t first = random.below(whole + 1), most = whole - first;
    const uint64_t count =
        random.below(4) == 0 ? std::min<uint64_t>(most, 1) : random.below(most + 1);
    return std::pair(first, count);
  };
  for (int i = 0; i < 500; ++i) {
    Shape shape;
    shape.rows = random.one_of(kRowCounts);
    shape.columns = random.one_of(random.below(2) == 0 ? kColumnCounts : kTilesOfColumns);
    shape.batch = random.below(3) == 0 ? random.between(1, 130) : random.one_of(kBatches);
    // A few of the largest would cost as much as all the rest.
    if (shape.rows * shape.columns * shape.batch > 1'000'000) shape.batch = random.between(1, 9);
    shape.range = {0, shape.rows};
    if (random.below(2) == 0) {
      const auto [first, count] = part_of(shape.rows);
      shape.range = {first, first + count};
    }
    if (random.below(2) == 0) {
      const auto [first, count] = part_of(shape.columns);
      shape.some = ColumnRange{first, count};
    }
    shape.threads = static_cast<unsigned>(random.between(1, 4));
    shape.query_gap = random.below(4);
    shape.product_gap = random.below(4);
    shape.offset = random.below(4);
    shape.slab = random.one_of(slabs);
    expect_right_on_random(shape, random);
  }
}

// More rows and queries than fit a cache, where an engine cuts them into blocks.
TEST_P(EngineConformance, MultipliesManyRowsAndManyQueries) {
  SeededRandom random(107);
  expect_right_on_random({40'001, 3, 2, {0, 40'001}, 2}, random);
  expect_right_on_random({4097, 5, 70, {1, 4096}, 1, 3, 3, 3}, random);
  expect_right_on_random({130, 9, 200, {0, 130}, 2, 1, 1, 1}, random);
  // Enough for two threads to cut the rows, and too few columns for them to cut those.
  expect_right_on_random({12'352, 13, 3, {0, 12'352}, 2}, random);
  expect_right_on_random({40'001, 19, 40, {77, 40'000}, 2, 1, 1, 1}, random);
  expect_right_on_random({3'072, 7, 9, {0, 3'072}, 4}, random);
  // Tiles of columns and queries, and slabs.
  expect_right_on_random({3'072, 48, 64, {0, 3'072}}, random);
  expect_right_on_random({6'200, 97, 61, {130, 6'100}, 2}, random);
  expect_right_on_random({3'100, 120, 9, {70, 3'100}, 1, 0, 0, 0, 90}, random);
  for (const size_t batch : {1, 2, 3, 4, 5, 33}) {
    expect_right_on_random({6'200, 61, batch, {0, 6'200}, 3, 0, 0, 0, 60}, random);
    // Threads cut columns, rows, or queries; the first slab and the last are not whole.
    expect_right_on_random({200, 400, batch, {3, 199}, 4, 0, 0, 0, 0, ColumnRange{101, 251}},
                           random);
    expect_right_on_random({200, 700, batch, {0, 200}, 1, 0, 0, 0, 240, ColumnRange{101, 555}},
                           random);
    expect_right_on_random({12'352, 23, batch, {0, 12'352}, 2, 0, 0, 0, 0, ColumnRange{7, 13}},
                           random);
  }
}

// One after another, and shared out among threads where there are many; with as many columns as
// tiles have, one less and one more.
TEST_P(EngineConformance, MultipliesTheColumnsOfBucketsWithTheirOwnWords) {
  SeededRandom random(119);
  constexpr uint64_t kBucketRows = 130, kGap = 3;
  constexpr size_t kQueries = 5;
  for (const size_t bucket_count : {1, 2, 3, 13, 40}) {
    for (const uint64_t bucket_columns : {1, 5, 6, 7, 31}) {
      const uint64_t columns = bucket_count * bucket_columns;
      Problem problem(Shape{kBucketRows, columns, 1, {0, kBucketRows}});
      problem.fill(random);
      const auto engine = problem.engine(GetParam(), 3);
      const uint64_t stride = bucket_count * kBucketRows + kGap;
      const std::vector<uint32_t> words = random.words(kQueries * stride);
      std::vector<uint32_t> products = random.words(kQueries * (columns + kGap));
      std::vector<uint32_t> expected = products;
      engine->multiply_buckets({words.data(), kQueries, stride}, bucket_count,
                               {products.data(), kQueries, columns + kGap});
      for (size_t b = 0; b < kQueries; ++b) {
        for (uint64_t c = 0; c < columns; ++c) {
          const uint32_t* query = words.data() + b * stride + c / bucket_columns * kBucketRows;
          const std::span<const uint8_t> column = problem.columns(c, 1);
          for (uint64_t r = 0; r < kBucketRows; ++r) {
            expected[b * (columns + kGap) + c] +=
                query[r] * static_cast<uint32_t>(int32_t{static_cast<int8_t>(column[r])});
          }
        }
      }
      ASSERT_TRUE(products == expected) << bucket_count << " buckets of " << bucket_columns;
    }
  }
}

// Some columns from another engine of the same sizes, which computes meanwhile, and is gone when
// they are used.
TEST_P(EngineConformance, SharesColumnsWithAnotherEngine) {
  const auto alone = make_engine(GetParam(), 130, 9, 1);
  EXPECT_FALSE(alone->share_columns(0, 3, *make_engine(GetParam(), 131, 9, 1)));
  EXPECT_FALSE(alone->share_columns(0, 3, *make_engine(GetParam(), 130, 10, 1)));
  SeededRandom random(114);
  for (const Shape& base : {Shape{3'100, 31, 2, {0, 3'100}, 2}, Shape{130, 70, 5, {1, 129}, 1}}) {
    for (const uint64_t slab : {0, 6, 12, 24}) {
      Shape shape = base;
      shape.slab = slab;
      const uint64_t first = random.below(shape.columns);
      const uint64_t count = random.between(1, shape.columns - first);
      Problem before(shape), after(shape);
      before.fill(random);
      after.fill(random);
      after.take_columns(first, count, before);
      auto old = before.engine(GetParam(), shape.threads);
      const auto engine = after.empty_engine(GetParam(), shape.threads);
      std::thread products([&] {
        const std::vector<uint32_t> expected = before.expected();
        for (int i = 0; i < 5; ++i) EXPECT_TRUE(before.computed(*old) == expected) << shape;
      });
      // By several threads, and one of them before the rest is set, the other after it.
      const uint64_t half = count / 2;
      EXPECT_TRUE(engine->share_columns(first, half, *old));
      std::thread rest([&] {
        engine->set_columns(first + count,
                            after.columns(first + count, shape.columns - first - count));
      });
      engine->set_columns(0, after.columns(0, first));
      EXPECT_TRUE(engine->share_columns(first + half, count - half, *old));
      rest.join();
      engine->seal();
      products.join();
      old.reset();
      ASSERT_TRUE(after.computed(*engine) == after.expected()) << shape << ", " << first;
    }
  }
}

// An engine does not mistake what another keeps between products for its own, and gives the same
// again; parts of a matrix that is cut by rows, or by columns, add up to the whole.
TEST_P(EngineConformance, TakesTurnsAndAddsUpPartsOfTheMatrix) {
  SeededRandom random(103);
  std::vector<Problem> problems;
  std::vector<std::unique_ptr<Engine>> engines;
  for (const Shape& shape : {Shape{1000, 33, 17, {0, 1000}, 3}, Shape{777, 70, 2, {5, 700}, 2}}) {
    problems.emplace_back(shape).fill(random);
    engines.push_back(problems.back().engine(GetParam(), shape.threads));
  }
  for (int i = 0; i < 12; ++i) {
    ASSERT_TRUE(problems[i % 2].computed(*engines[i % 2]) == problems[i % 2].expected()) << i;
  }
  const Shape shape{4097, 131, 5, {0, 4097}, 2};
  Problem problem(shape);
  problem.fill(random);
  const auto engine = problem.engine(GetParam(), shape.threads);
  const std::vector<uint32_t> queries = random.words(shape.batch * shape.rows);
  const auto add = [&](RowRange rows, ColumnRange columns, std::vector<uint32_t>& products) {
    engine->multiply_columns({queries.data() + rows.first, shape.batch, shape.rows}, rows, columns,
                             {products.data() + columns.first, shape.batch, shape.columns});
  };
  std::vector<uint32_t> whole(shape.batch * shape.columns, 7);
  std::vector<uint32_t> of_rows = whole, of_columns = whole;
  engine->multiply({queries.data(), shape.batch, shape.rows}, shape.range,
                   {whole.data(), shape.batch, shape.columns});
  for (uint64_t first = 0, last; first < shape.rows; first = last) {
    last = std::min(shape.rows, first + random.between(1, 1000));
    add({first, last}, {0, shape.columns}, of_rows);
  }
  for (uint64_t first = 0, count; first < shape.columns; first += count) {
    count = std::min(shape.columns - first, random.between(1, 20));
    add(shape.range, {first, count}, of_columns);
  }
  EXPECT_EQ(of_rows, whole);
  EXPECT_EQ(of_columns, whole);
}

// A million products and some, each of them right.
TEST_P(EngineConformance, MultipliesAMillionProducts) {
  SeededRandom random(110);
  // Three queries at a time, an emulator takes twenty seconds for a million.
  const bool is_slow = support::kIsEmulated && GetParam() == "cuda:dp4a";
  const uint64_t columns = is_slow ? 203 : 2'003;
  expect_right_on_random({200, columns, 501, {0, 200}, 2}, random);
}

// Small: for tools that make a device some hundred times slower.
TEST_P(EngineConformance, SanitizerSample) {
  SeededRandom random(112);
  expect_right_on_random({300, 40, 1, {3, 299}, 1}, random);
  expect_right_on_random({300, 40, 3, {0, 300}, 1}, random);
  expect_right_on_random({700, 270, 7, {0, 700}, 1}, random);
  expect_right_on_random({2'100, 150, 12, {0, 2'100}, 1}, random);
  expect_right_on_random({2'100, 150, 40, {0, 2'100}, 1}, random);
}

TEST_P(EngineConformance, LeavesProductsOfNoQueriesAndNoRows) {
  SeededRandom random(105);
  expect_right_on_random({64, 5, 0, {0, 64}}, random);
  expect_right_on_random({64, 0, 2, {0, 64}, 3}, random);
  expect_right_on_random({0, 5, 2, {0, 0}, 3}, random);
  expect_right_on_random({64, 5, 3, {0, 0}}, random);
  expect_right_on_random({64, 5, 3, {64, 64}}, random);
}

// Instructions that saturate at 16 bits, and signs mistaken, fail here: all -128 times all ones,
// over more than 2^17 rows, and the other extremes.
TEST_P(EngineConformance, WrapsAtTheExtremes) {
  constexpr uint64_t kMmaRows = (1u << 17) + 64;
  std::vector<std::pair<uint64_t, size_t>> shapes = {{5, 3}, {9, 5}, {1, 1}, {50, 4}};
  // As many rows as there must be take an emulator long: one shape for each way to share the work.
  if (support::kIsEmulated) shapes.resize(2);
  for (const auto& [columns, batch] : shapes) {
    for (const auto& [byte, word] : {std::pair<int, uint32_t>{-128, 0xffffffff},
                                     {-128, 0x80000000},
                                     {-128, 0x7fffffff},
                                     {127, 0xffffffff},
                                     {-1, 0xffffffff}}) {
      const Shape shape{kMmaRows, columns, batch, {0, kMmaRows}, 2};
      Problem problem(shape);
      problem.fill_with(static_cast<int8_t>(byte), word);
      expect_right(shape, problem);
    }
  }
}

TEST(EngineFactory, KnowsAutoFirstAndTheReferenceAlwaysAndNamesEnginesAsTheyAreCalled) {
  const std::vector<std::string> names = engine_names();
  EXPECT_EQ(names.front(), "auto");
  for (const char* name : {"cpu", "cpu:portable"}) {
    EXPECT_EQ(std::ranges::count(names, name), 1) << name;
  }
  for (const std::string& name : names) {
    const std::string itself(make_engine(name, 64, 4, 1)->name());
    EXPECT_EQ(std::ranges::count(names, itself), 1) << itself;
    EXPECT_EQ(make_engine(itself, 64, 4, 1)->name(), itself);
    EXPECT_TRUE(name == "auto" || itself.starts_with(name)) << itself;
  }
}

TEST(EngineFactory, RefusesOtherNamesAndSaysWhichThereAre) {
  for (const char* name : {"", "CPU", "cpu:", "cpu:sse9", "gpu", "auto "}) {
    const std::string message = support::input_error_of([&] { make_engine(name, 64, 4, 1); });
    EXPECT_NE(message.find("portable"), std::string::npos) << '"' << name << "\": " << message;
  }
}

}  // namespace
}  // namespace blindfuse
