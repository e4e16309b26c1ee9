// Every #include is one that the table of layers allows (cmake/layers.txt), and every line of the
// table is needed; CMake links by the same table, and docs/ARCHITECTURE.md shows it. Secrets, which
// live in client alone, cannot reach the server's code.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/layers.h"
#include "tests/paths.h"

namespace blindfuse {
namespace {

using support::Layer;
using support::Layers;
using support::lies_in;

const std::filesystem::path& root() {
  static const std::filesystem::path folder = paths::source_folder();
  return folder;
}

const Layers& layers() {
  static const Layers read = Layers::of_file(root() / "cmake" / "layers.txt");
  return read;
}

// The library of the table's last column that a header in angle brackets belongs to; "" for the
// language's and the system's own. Headers that are not known here have to be put here first.
std::optional<std::string> library_of(const std::string& header) {
  static const std::vector<std::pair<std::string, std::string>> libraries = {
      {"openssl/ssl.h", "openssl-tls"},
      {"openssl/", "openssl"},
      {"nlohmann/", "json"},
      {"CLI/", "cli11"},
      {"spdlog/", "spdlog"},
      {"fmt/", "fmt"},
      {"sqlite3.h", "sqlite"},
      {"boost/", "boost"},
      {"prometheus/", "prometheus"},
      {"httplib.h", "httplib"},
      {"cuda.h", "cuda"},
      {"cuda_runtime_api.h", "cuda"},
      {"thrust/", "cuda"},
      {"nanobind/", "nanobind"},
      {"emscripten.h", "emscripten"},
      {"emscripten/", "emscripten"},
      {"wasm_simd128.h", "emscripten"},
      {"sys/socket.h", "sockets"},
      {"netinet/", "sockets"},
      {"arpa/", "sockets"},
      {"netdb.h", "sockets"},
      {"thread", "threads"},
  };
  static const std::set<std::string> system = {
      "arm_neon.h",  "cpuid.h",  "cxxabi.h", "dirent.h",  "dlfcn.h", "fcntl.h",
      "immintrin.h", "malloc.h", "poll.h",   "pthread.h", "sched.h", "signal.h",
      "spawn.h",     "string.h", "time.h",   "unistd.h"};
  for (const auto& [beginning, library] : libraries) {
    const bool fits =
        beginning.ends_with('/') ? header.starts_with(beginning) : header == beginning;
    if (fits) return library;
  }
  const bool is_language = header.find_first_of("/.") == std::string::npos;
  if (is_language || header.starts_with("sys/") || system.contains(header)) return "";
  return std::nullopt;
}

// The name in an #include line, and whether it is in quotes.
struct Include {
  std::string name;
  bool is_quoted = false;
};

std::optional<Include> include_of(const std::string& line) {
  std::string rest = line;
  std::erase_if(rest, [](char c) { return c == ' ' || c == '\t' || c == '\r'; });
  if (!rest.starts_with("#include")) return std::nullopt;
  rest = rest.substr(8);
  if (rest.size() < 2 || (rest[0] != '"' && rest[0] != '<')) return Include{rest, true};
  const bool is_quoted = rest[0] == '"';
  return Include{rest.substr(1, rest.find(is_quoted ? '"' : '>', 1) - 1), is_quoted};
}

// The entries of the table that includes of some files used.
struct Used {
  std::set<std::pair<std::string, std::string>> uses;  // a layer's place, and an entry of its lists
};

// Headers for others are included as they are installed.
std::string project_name(const std::string& name) {
  if (!name.starts_with("blindfuse/")) return name;
  for (const char* folder : {"src/include/", "client/include/"}) {
    if (std::filesystem::exists(root() / folder / name) ||
        std::filesystem::exists(root() / folder / (name + ".in"))) {
      return folder + name;
    }
  }
  return name;
}

// The fault of an include of a file of this layer; "" when there is none.
std::string violation_of(const Layer& layer, const Include& include, Used& used) {
  const std::string name = project_name(include.name);
  // A header of the project in angle brackets is one nevertheless.
  if (include.is_quoted || layers().of(name) != nullptr) {
    if (layers().of(name) == &layer) return "";
    for (const std::string& use : layer.uses) {
      const bool is_layer = layers().of(name) != nullptr && layers().of(name)->place == use;
      if (!is_layer && name != use) continue;
      used.uses.emplace(layer.place, use);
      return "";
    }
    return " includes " + name + ", which cmake/layers.txt does not list for " + layer.place;
  }
  const std::optional<std::string> library = library_of(name);
  if (!library) return " includes <" + name + ">, which no library here is known for";
  if (library->empty()) return "";
  used.uses.emplace(layer.place, *library);
  const bool allowed = std::ranges::find(layer.libraries, *library) != layer.libraries.end();
  if (allowed) return "";
  return " includes <" + name + "> of " + *library + ", which cmake/layers.txt does not list for " +
         layer.place;
}

// The faults of the includes of a file; empty when there are none.
std::string violations_of(const std::string& file, std::istream& text, Used& used) {
  const Layer* layer = layers().of(file);
  if (layer == nullptr) return file + ": is in no layer\n";
  std::string wrong;
  for (std::string line; std::getline(text, line);) {
    const auto include = include_of(line);
    if (!include) continue;
    const std::string violation = violation_of(*layer, *include, used);
    if (!violation.empty()) wrong += file + violation + "\n";
  }
  return wrong;
}

bool is_source(const std::filesystem::path& path) {
  return std::ranges::any_of(std::vector<std::string>{".h", ".cpp", ".cu", ".cuh", ".in"},
                             [&](const auto& extension) { return path.extension() == extension; });
}

// By their names from the root, all that are in a layer or should be.
std::vector<std::string> source_files() {
  std::vector<std::string> files;
  for (const char* folder : {"src", "host", "cuda", "client"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root() / folder)) {
      if (!entry.is_regular_file() || !is_source(entry.path())) continue;
      std::string file = entry.path().lexically_relative(root()).generic_string();
      if (!file.starts_with("host/packaging/")) files.push_back(std::move(file));
    }
  }
  return files;
}

TEST(Layering, EveryFileIncludesWhatItsLayerMayAndNoLayerMayMoreThanItDoes) {
  Used used;
  const std::vector<std::string> files = source_files();
  EXPECT_GT(files.size(), 300u);
  for (const std::string& file : files) {
    std::ifstream text(root() / file);
    EXPECT_EQ(violations_of(file, text, used), "");
  }
  for (const Layer& layer : layers().all()) {
    for (const auto* list : {&layer.uses, &layer.libraries}) {
      for (const std::string& entry : *list) {
        EXPECT_TRUE(used.uses.contains({layer.place, entry}))
            << "cmake/layers.txt: no file of " << layer.place << " includes anything of " << entry;
      }
    }
  }
}

// So that no two need each other.
TEST(Layering, EveryLayerUsesThoseAboveItInTheTable) {
  std::set<std::string> seen;
  for (const Layer& layer : layers().all()) {
    for (const std::string& use : layer.uses) {
      const Layer* used = layers().of(use);
      ASSERT_NE(used, nullptr) << use;
      EXPECT_TRUE(seen.contains(used->place)) << layer.place << " uses " << use;
    }
    EXPECT_TRUE(seen.insert(layer.place).second) << layer.place << " is there twice";
    EXPECT_TRUE(std::filesystem::exists(root() / layer.place)) << layer.place;
  }
}

// The properties of the table on which readers may rely, whoever edits it.
TEST(Layering, TheTableKeepsSecretsFromTheServerAndCudaAndLibrariesFromArithmetic) {
  for (const Layer& layer : layers().all()) {
    const auto expect_none_of = [&](const char* place, const char* other) {
      if (!lies_in(layer.place, place)) return;
      for (const std::string& use : layer.uses) {
        EXPECT_FALSE(lies_in(use, other)) << layer.place << " uses " << use;
      }
    };
    expect_none_of("host", "client");
    expect_none_of("client", "host");
    for (const char* other : {"host", "client"}) expect_none_of("cuda", other);
    for (const char* other : {"host", "client", "cuda"}) expect_none_of("src", other);
    if (lies_in(layer.place, "src/base") || lies_in(layer.place, "src/arithmetic") ||
        lies_in(layer.place, "src/engine") || lies_in(layer.place, "host/cpu")) {
      EXPECT_TRUE(layer.libraries.empty()) << layer.place;
    }
  }
}

// Rows of a table of Markdown that begin with a code span: their cells, code spans without marks.
std::vector<std::vector<std::string>> rows_with_code(std::istream& text) {
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(text, line);) {
    if (!line.starts_with("| `")) continue;
    std::erase_if(line, [](char c) { return c == '`' || c == ','; });
    std::istringstream cells(line.substr(1));
    rows.emplace_back();
    for (std::string cell; std::getline(cells, cell, '|');) rows.back().push_back(cell);
  }
  return rows;
}

TEST(Layering, TheArchitectureShowsTheTable) {
  std::ifstream text(root() / "docs" / "ARCHITECTURE.md");
  std::string as_table;
  for (const auto& cells : rows_with_code(text)) {
    if (cells.size() != 4) continue;  // of another table
    as_table += cells[0] + "|" + cells[2] + "|" + cells[3] + "\n";
  }
  std::istringstream shown(as_table);
  const std::vector<Layer> in_document = Layers(shown).all();
  const std::vector<Layer>& in_table = layers().all();
  for (size_t i = 0; i < std::max(in_document.size(), in_table.size()); ++i) {
    ASSERT_LT(i, in_document.size()) << "docs/ARCHITECTURE.md lacks " << in_table[i].place;
    ASSERT_LT(i, in_table.size()) << "cmake/layers.txt lacks " << in_document[i].place;
    EXPECT_EQ(in_document[i].place, in_table[i].place);
    EXPECT_EQ(in_document[i].uses, in_table[i].uses) << in_table[i].place;
    EXPECT_EQ(in_document[i].libraries, in_table[i].libraries) << in_table[i].place;
  }
}

std::string violations_in(const std::string& file, const std::string& line) {
  std::istringstream text("// a file\n" + line + "\n");
  Used used;
  return violations_of(file, text, used);
}

// The rules themselves, so that a scan which finds nothing means something.
TEST(Layering, RulesCatchWhatTheyForbid) {
  for (const auto& [file, line] : std::vector<std::pair<std::string, std::string>>{
           {"src/base/hex.cpp", "#include \"src/arithmetic/layout.h\""},
           {"src/base/base64.cpp", "#include <openssl/evp.h>"},
           {"src/protocol/key_hash.cpp", "#include <sys/socket.h>"},
           {"src/protocol/key_hash.h", "#include \"key_hash.h\""},
           {"src/protocol/key_hash.h", "#include <blindfuse/client.h>"},
           {"src/protocol/key_hash.h", "#include <zstd.h>"},
           {"host/loose.cpp", "#include <vector>"},
           {"host/server/http/server.cpp", "#include \"src/arithmetic/layout.h\""},
           {"host/main.cpp", "#  include <client/secret.h>"},
           {"host/main.cpp", "#include \"../client/secret.h\""},
           {"host/main.cpp", "#include SECRETS"},
           {"cuda/cuda_engine.cpp", " #include \"client/secret.h\""},
           {"client/query.cpp", "#include\"cuda/cuda_engine.h\""},
           {"elsewhere/a.cpp", ""}}) {
    EXPECT_NE(violations_in(file, line), "") << file << ": " << line;
  }
}

TEST(Layering, RulesAllowTheRest) {
  for (const auto& [file, line] : std::vector<std::pair<std::string, std::string>>{
           {"src/base/errors.h", "#include <blindfuse/error_kinds.h>"},
           {"src/arithmetic/ring/butterflies.cpp", "#include \"src/arithmetic/layout.h\""},
           {"src/protocol/key_hash.cpp", "#include \"src/protocol/sha256.h\""},
           {"src/protocol/key_hash.cpp", "#include <sys/stat.h>"},
           {"host/server/http/connection.cpp", "#include <sys/socket.h>"},
           {"host/engines/engine_factory.cpp", "#include \"cuda/cuda_engine_maker.h\""},
           {"client/session.cpp", "#include <blindfuse/client.h>"},
           {"client/query.cpp", "// #include \"host/cpu/scan/matrix.h\""}}) {
    EXPECT_EQ(violations_in(file, line), "") << file << ": " << line;
  }
}

}  // namespace
}  // namespace blindfuse
