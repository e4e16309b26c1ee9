// The whole protocol of docs/PROTOCOL.md in its slowest and plainest form: the oracle that tests
// compare the product with. It shares no code with the product on purpose, and is itself checked
// against tests/vectors/*.json, which a separate implementation in Python writes.
//
// Requires well-formed arguments (sizes that fit each other) and does not check them, except where
// the protocol tells a reader to refuse: unpack and decode_record answer nullopt.

#ifndef BLINDFUSE_TESTS_REFERENCE_PIR_H_
#define BLINDFUSE_TESTS_REFERENCE_PIR_H_

#include <openssl/evp.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

namespace reference_pir {

using Bytes = std::vector<std::uint8_t>;
using Words = std::vector<std::uint32_t>;
using Ternary = std::vector<int>;  // each -1, 0 or 1

inline Bytes bytes_of(std::string_view text) { return Bytes(text.begin(), text.end()); }

inline Bytes operator+(Bytes left, const Bytes& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

inline Bytes slice(const Bytes& bytes, std::size_t from, std::size_t count) {
  const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(from);
  return Bytes(begin, begin + static_cast<std::ptrdiff_t>(count));
}

// `value` as `count` little-endian bytes.
inline Bytes little_endian(std::uint64_t value, std::size_t count) {
  Bytes out;
  for (std::size_t i = 0; i < count; ++i) {
    out.push_back(static_cast<std::uint8_t>(value & 255));
    value >>= 8;
  }
  return out;
}

inline std::uint64_t from_little_endian(const Bytes& bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = (value << 8) | bytes[i];
  return value;
}

inline Bytes bytes_of_words(const Words& words) {
  Bytes out;
  for (const std::uint32_t word : words) {
    for (int shift = 0; shift < 32; shift += 8) {
      out.push_back(static_cast<std::uint8_t>((word >> shift) & 255));
    }
  }
  return out;
}

inline Bytes sha256(const Bytes& bytes) {
  Bytes digest(32);
  unsigned int length = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), &length, EVP_sha256(), nullptr) != 1) {
    throw std::runtime_error("SHA-256 failed");
  }
  return digest;
}

// --- Section 1 ---

inline std::uint64_t mulhi(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t low = 0xffffffff;
  const std::uint64_t middle = (a >> 32) * (b & low) + (((a & low) * (b & low)) >> 32);
  const std::uint64_t other = (a & low) * (b >> 32) + (middle & low);
  return (a >> 32) * (b >> 32) + (middle >> 32) + (other >> 32);
}

inline std::uint64_t mix64(std::uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccd;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53;
  x ^= x >> 33;
  return x;
}

// --- Section 3 ---

struct ShardEntry {
  std::uint64_t filter_seed = 0;
  std::uint64_t key_count = 0;
  Bytes input_hash;
  Bytes matrix_hash;
  Bytes hint_hash;
};

inline Bytes shard_table(const std::vector<ShardEntry>& entries) {
  Bytes table;
  for (const ShardEntry& entry : entries) {
    table = table + little_endian(entry.filter_seed, 8) + little_endian(entry.key_count, 8) +
            entry.input_hash + entry.matrix_hash + entry.hint_hash;
  }
  return table;
}

// --- Section 4 ---

struct KeyHash {
  Bytes h;
  std::uint64_t x0 = 0;
  std::uint64_t x1 = 0;

  std::uint64_t shard(std::uint64_t shard_count) const { return mulhi(x0, shard_count); }
  Bytes digest(std::size_t digest_bytes) const { return slice(h, 16, digest_bytes); }
};

inline KeyHash key_hash(const Bytes& salt, const Bytes& key) {
  KeyHash out;
  out.h = sha256(bytes_of("blindfuse/key/1") + salt + key);
  out.x0 = from_little_endian(slice(out.h, 0, 8));
  out.x1 = from_little_endian(slice(out.h, 8, 8));
  return out;
}

// The shape of every shard's filter.
struct FuseShape {
  std::uint64_t row_count = 0;       // R
  std::uint64_t segment_length = 0;  // L
  unsigned arity = 3;
};

// The shape a planner takes when its fullest shard has `key_count` keys, 1 or more.
inline FuseShape fuse_shape(std::uint64_t key_count, unsigned arity) {
  const double m = static_cast<double>(key_count);
  const double log_m = std::log(std::max(m, 2.0));
  double exponent = std::log(m) / std::log(3.33) + 2.25;
  double factor = std::max(1.125, 0.875 + 0.25 * std::max(1.0, std::log(1e6) / log_m));
  if (arity == 4) {
    exponent = std::log(m) / std::log(2.91) - 0.5;
    factor = std::max(1.075, 0.77 + 0.305 * std::max(1.0, std::log(6e5) / log_m));
  }
  const double length = std::clamp(std::exp2(std::floor(exponent)), 64.0, 262144.0);
  const double capacity = std::floor(m * factor + 0.5);
  const double segments = std::max(std::ceil(capacity / length), static_cast<double>(arity));
  return {static_cast<std::uint64_t>(length * segments), static_cast<std::uint64_t>(length), arity};
}

inline std::vector<std::size_t> rows_of_key(std::uint64_t x1, std::uint64_t filter_seed,
                                            const FuseShape& shape) {
  const std::uint64_t length = shape.segment_length;
  const std::uint64_t starts = shape.row_count / length - (shape.arity - 1);
  const std::uint64_t a = mix64(x1 + filter_seed);
  const std::uint64_t b = mix64(a + 0x9e3779b97f4a7c15);
  const std::uint64_t first = mulhi(a, starts * length);
  std::vector<std::size_t> rows = {first};
  for (unsigned i = 1; i < shape.arity; ++i) {
    rows.push_back((first + i * length) ^ ((b >> (18 * (i - 1))) % length));
  }
  return rows;
}

// --- Section 5 ---

struct RecordFormat {
  std::size_t digest_bytes = 8;
  std::size_t length_bytes = 2;
  std::size_t value_bytes = 0;

  std::size_t record_bytes() const { return digest_bytes + length_bytes + value_bytes; }
};

inline Bytes encode_record(const RecordFormat& format, const Bytes& digest, const Bytes& value) {
  Bytes record = digest + little_endian(value.size(), format.length_bytes) + value;
  record.resize(format.record_bytes(), 0);
  return record;
}

// The value, or nullopt for "not there".
inline std::optional<Bytes> decode_record(const RecordFormat& format, const Bytes& digest,
                                          const Bytes& record) {
  if (slice(record, 0, format.digest_bytes) != digest) return std::nullopt;
  std::uint64_t length = format.value_bytes;
  if (format.length_bytes > 0) {
    length = from_little_endian(slice(record, format.digest_bytes, format.length_bytes));
  }
  if (length > format.value_bytes) return std::nullopt;
  const std::size_t start = format.digest_bytes + format.length_bytes;
  for (std::size_t i = start + length; i < record.size(); ++i) {
    if (record[i] != 0) return std::nullopt;
  }
  return slice(record, start, length);
}

// The matrix of one shard, or of several side by side: R rows, kept column by column.
struct Matrix {
  std::size_t row_count = 0;
  std::size_t column_count = 0;
  Bytes bytes;

  Matrix(std::size_t rows, std::size_t columns)
      : row_count(rows), column_count(columns), bytes(rows * columns, 0) {}

  std::uint8_t& at(std::size_t row, std::size_t column) { return bytes[column * row_count + row]; }
  std::uint8_t at(std::size_t row, std::size_t column) const {
    return bytes[column * row_count + row];
  }

  // The entry as products read it: -128..127, as a word modulo 2^32.
  std::uint32_t word_at(std::size_t row, std::size_t column) const {
    const std::uint32_t byte = at(row, column);
    return byte < 128 ? byte : byte - 256;  // wraps, which is the residue of byte - 256
  }
};

// The sum of the given rows, byte by byte modulo 256: the record of the key with these rows.
inline Bytes sum_of_rows(const Matrix& matrix, const std::vector<std::size_t>& rows) {
  Bytes sum(matrix.column_count, 0);
  for (std::size_t column = 0; column < matrix.column_count; ++column) {
    for (const std::size_t row : rows) {
      sum[column] = static_cast<std::uint8_t>((sum[column] + matrix.at(row, column)) & 255);
    }
  }
  return sum;
}

struct FilterEntry {
  std::vector<std::size_t> rows;
  Bytes record;
};

// Peels the graph, then fills rows in the reverse order; nullopt when it does not peel (take
// another seed). Rows that no key determines stay zero.
inline std::optional<Matrix> build_filter(const std::vector<FilterEntry>& entries,
                                          std::size_t row_count, std::size_t record_bytes) {
  std::map<std::size_t, std::set<std::size_t>> entries_at_row;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    for (const std::size_t row : entries[i].rows) entries_at_row[row].insert(i);
  }
  std::set<std::size_t> candidates;
  for (const auto& [row, here] : entries_at_row) candidates.insert(row);
  std::vector<std::pair<std::size_t, std::size_t>> peeled;  // entry, and the row that is its own
  while (!candidates.empty()) {
    const std::size_t row = candidates.extract(candidates.begin()).value();
    if (entries_at_row[row].size() != 1) continue;
    const std::size_t entry = *entries_at_row[row].begin();
    for (const std::size_t other : entries[entry].rows) {
      entries_at_row[other].erase(entry);
      candidates.insert(other);
    }
    peeled.emplace_back(entry, row);
  }
  if (peeled.size() != entries.size()) return std::nullopt;

  Matrix matrix(row_count, record_bytes);
  while (!peeled.empty()) {
    const auto [entry, row] = peeled.back();
    peeled.pop_back();
    const Bytes others = sum_of_rows(matrix, entries[entry].rows);  // its own row is still zero
    for (std::size_t column = 0; column < record_bytes; ++column) {
      const int difference = entries[entry].record[column] - others[column];
      matrix.at(row, column) = static_cast<std::uint8_t>(difference & 255);
    }
  }
  return matrix;
}

inline Matrix side_by_side(const std::vector<Matrix>& shards) {
  Matrix all(shards.at(0).row_count, 0);
  for (const Matrix& shard : shards) {
    all.column_count += shard.column_count;
    all.bytes = all.bytes + shard.bytes;
  }
  return all;
}

// --- Section 6 ---

// The n * 64 words of panel `panel`: A[k][64 * panel + i] is word 64 * k + i.
inline Words public_matrix_panel(const Bytes& seed, std::uint64_t panel, std::size_t dimension) {
  // OpenSSL wants the 32-bit block counter before the 96-bit nonce.
  const Bytes counter_and_nonce = Bytes(4, 0) + Bytes(4, 0) + little_endian(panel, 8);
  const Bytes zeros(dimension * 256, 0);
  Bytes stream(zeros.size());
  int written = 0;
  EVP_CIPHER_CTX* context = EVP_CIPHER_CTX_new();
  const bool done = EVP_EncryptInit_ex(context, EVP_chacha20(), nullptr, seed.data(),
                                       counter_and_nonce.data()) == 1 &&
                    EVP_EncryptUpdate(context, stream.data(), &written, zeros.data(),
                                      static_cast<int>(zeros.size())) == 1;
  EVP_CIPHER_CTX_free(context);
  if (!done) throw std::runtime_error("ChaCha20 failed");
  Words words;
  for (std::size_t i = 0; i < stream.size(); i += 4) {
    words.push_back(static_cast<std::uint32_t>(from_little_endian(slice(stream, i, 4))));
  }
  return words;
}

// A: n rows of R words.
using PublicMatrix = std::vector<Words>;

inline PublicMatrix public_matrix(const Bytes& seed, std::size_t dimension, std::size_t row_count) {
  PublicMatrix a(dimension);
  for (std::uint64_t panel = 0; panel < row_count / 64; ++panel) {
    const Words words = public_matrix_panel(seed, panel, dimension);
    for (std::size_t i = 0; i < words.size(); ++i) a[i / 64].push_back(words[i]);
  }
  return a;
}

// --- Section 7 ---

inline std::uint32_t round_word(std::uint32_t x, unsigned bits) {
  const std::uint64_t unit = std::uint64_t{1} << (32 - bits);
  std::uint64_t quotient = x / unit;
  const std::uint64_t remainder = x % unit;
  if (2 * remainder > unit || (2 * remainder == unit && quotient % 2 == 1)) ++quotient;
  return static_cast<std::uint32_t>(quotient % (std::uint64_t{1} << bits));
}

inline std::uint32_t restore_word(std::uint32_t t, unsigned bits) { return t << (32 - bits); }

inline Bytes pack(const Words& numbers, unsigned bits) {
  Bytes out((numbers.size() * bits + 7) / 8, 0);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    for (unsigned j = 0; j < bits; ++j) {
      const std::size_t t = i * bits + j;
      const std::uint32_t bit = (numbers[i] >> j) & 1;
      out[t / 8] = static_cast<std::uint8_t>(out[t / 8] | (bit << (t % 8)));
    }
  }
  return out;
}

// nullopt when the length is wrong or an unused bit is set.
inline std::optional<Words> unpack(const Bytes& packed, unsigned bits, std::size_t count) {
  if (packed.size() != (count * bits + 7) / 8) return std::nullopt;
  Words numbers(count, 0);
  for (std::size_t t = 0; t < packed.size() * 8; ++t) {
    const std::uint32_t bit = (packed[t / 8] >> (t % 8)) & 1;
    if (t < count * bits) {
      numbers[t / bits] |= bit << (t % bits);
    } else if (bit != 0) {
      return std::nullopt;
    }
  }
  return numbers;
}

inline Bytes round_and_pack(const Words& words, unsigned bits) {
  Words numbers;
  for (const std::uint32_t word : words) numbers.push_back(round_word(word, bits));
  return pack(numbers, bits);
}

inline std::optional<Words> unpack_and_restore(const Bytes& packed, unsigned bits,
                                               std::size_t count) {
  std::optional<Words> words = unpack(packed, bits, count);
  if (words) {
    for (std::uint32_t& word : *words) word = restore_word(word, bits);
  }
  return words;
}

// --- Sections 8 to 11 ---

// One row vector of words times the matrix, modulo 2^32: what an engine computes.
inline Words multiply(const Words& row_vector, const Matrix& matrix) {
  Words products(matrix.column_count, 0);
  for (std::size_t column = 0; column < matrix.column_count; ++column) {
    for (std::size_t row = 0; row < matrix.row_count; ++row) {
      products[column] += row_vector[row] * matrix.word_at(row, column);
    }
  }
  return products;
}

// M = A * D of one shard before rounding, column by column: M[k][c] is word c * n + k.
inline Words hint(const PublicMatrix& a, const Matrix& shard) {
  Words words(a.size() * shard.column_count);
  for (std::size_t k = 0; k < a.size(); ++k) {
    const Words products = multiply(a[k], shard);
    for (std::size_t column = 0; column < shard.column_count; ++column) {
      words[column * a.size() + k] = products[column];
    }
  }
  return words;
}

// u: 1 at the given rows, 0 elsewhere.
inline Words selection(const std::vector<std::size_t>& rows, std::size_t row_count) {
  Words u(row_count, 0);
  for (const std::size_t row : rows) u[row] = 1;
  return u;
}

// b = s * A + e + 2^24 * u before rounding.
inline Words encrypt(const PublicMatrix& a, const Ternary& s, const Ternary& e, const Words& u) {
  Words b(u.size());
  for (std::size_t row = 0; row < u.size(); ++row) {
    b[row] = static_cast<std::uint32_t>(e[row]) + (u[row] << 24);
    for (std::size_t k = 0; k < s.size(); ++k) {
      b[row] += static_cast<std::uint32_t>(s[k]) * a[k][row];
    }
  }
  return b;
}

// r before rounding, from the query, a bit sequence; nullopt when the query must be refused.
inline std::optional<Words> respond(const Bytes& query, unsigned query_bits, const Matrix& matrix) {
  const std::optional<Words> b = unpack_and_restore(query, query_bits, matrix.row_count);
  if (!b) return std::nullopt;
  return multiply(*b, matrix);
}

// The phases of one shard's columns. `response` and `hint_words` are restored words: of all
// columns, and of this shard, whose first column is first_column.
inline Words phases(const Words& response, std::size_t first_column, std::size_t record_bytes,
                    const Words& hint_words, const Ternary& s) {
  Words out;
  for (std::size_t column = 0; column < record_bytes; ++column) {
    std::uint32_t phase = response[first_column + column];
    for (std::size_t k = 0; k < s.size(); ++k) {
      phase -= static_cast<std::uint32_t>(s[k]) * hint_words[column * s.size() + k];
    }
    out.push_back(phase);
  }
  return out;
}

// The record: each phase rounded to its upper byte.
inline Bytes decode(const Words& phases_of_shard) {
  Bytes record;
  for (const std::uint32_t phase : phases_of_shard) {
    record.push_back(static_cast<std::uint8_t>((phase + (1u << 23)) >> 24));
  }
  return record;
}

}  // namespace reference_pir

#endif  // BLINDFUSE_TESTS_REFERENCE_PIR_H_
