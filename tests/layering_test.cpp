// Which folder may include which: src is what both sides share, and secrets live in client alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/paths.h"

namespace blindfuse {
namespace {

struct Rule {
  std::string folder;                // the files in it, and in its folders unless they have a rule
  std::vector<std::string> allowed;  // where the project's own headers may come from
};

// The first that fits a file counts.
const std::vector<Rule>& rules() {
  static const std::vector<Rule> all = {
      {"src/system/", {"src/"}},
      {"src/program/", {"src/"}},
      {"src/", {"src/"}},
      // Usable for another service as it is.
      {"host/server/http/",
       {"host/server/http/", "src/system/", "src/program/log.h", "src/ascii.h", "src/errors.h",
        "src/hex.h"}},
      {"host/server/serving/", {"host/server/serving/", "host/database/", "src/"}},
      {"host/server/routes/",
       {"host/server/http/", "host/server/routes/", "host/server/serving/", "host/cpu/packing/",
        "src/"}},
      {"host/server/admin/",
       {"host/server/admin/", "host/server/http/", "host/server/routes/health.h",
        "host/server/routes/problem.h", "host/server/serving/", "src/"}},
      {"host/", {"host/", "cuda/", "src/"}},
      {"cuda/", {"cuda/", "src/"}},
      {"client/", {"client/", "src/"}},
  };
  return all;
}

// Besides, src computes: it opens no connections and knows no devices.
const std::vector<std::string> kNotInSrc = {"sys/socket.h", "netinet/", "arpa/",
                                            "httplib.h",    "cuda",     "sqlite3.h"};

bool starts_with_any(const std::string& text, const std::vector<std::string>& prefixes) {
  return std::ranges::any_of(prefixes,
                             [&](const auto& prefix) { return text.starts_with(prefix); });
}

const Rule* rule_of(const std::string& file) {
  for (const Rule& rule : rules()) {
    if (file.starts_with(rule.folder)) return &rule;
  }
  return nullptr;
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

// What is wrong with the includes of a file; empty when nothing is.
std::string violations_of(const std::string& file, std::istream& text) {
  const Rule* rule = rule_of(file);
  if (rule == nullptr) return file + ": has no rule\n";
  const bool is_protocol = rule->folder == "src/";
  std::string wrong;
  std::string line;
  while (std::getline(text, line)) {
    const auto include = include_of(line);
    if (!include) continue;
    // A header of the project in angle brackets is one nevertheless.
    const bool is_ours = include->is_quoted || rule_of(include->name) != nullptr;
    bool allowed = !is_ours || starts_with_any(include->name, rule->allowed);
    if (is_protocol && include->name.starts_with("src/system/")) allowed = false;
    if (is_protocol && !is_ours && starts_with_any(include->name, kNotInSrc)) allowed = false;
    if (!allowed) wrong += file + " includes " + include->name + "\n";
  }
  return wrong;
}

bool is_source(const std::filesystem::path& path) {
  return std::ranges::any_of(std::vector<std::string>{".h", ".cpp", ".cu", ".cuh", ".in"},
                             [&](const auto& extension) { return path.extension() == extension; });
}

TEST(Layering, EveryFileIncludesOnlyWhatItsFolderMay) {
  const std::filesystem::path root = blindfuse::paths::source_folder();
  std::map<std::string, int> files;
  for (const char* folder : {"src", "host", "cuda", "client"}) {
    if (!std::filesystem::exists(root / folder)) continue;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder)) {
      if (!entry.is_regular_file() || !is_source(entry.path())) continue;
      ++files[folder];
      std::ifstream text(entry.path());
      const std::string file = entry.path().lexically_relative(root).generic_string();
      EXPECT_EQ(violations_of(file, text), "");
    }
  }
  EXPECT_GT(files["src"], 20);
  EXPECT_GT(files["host"], 20);
  EXPECT_GT(files["client"], 0);
}

std::string violations_in(const std::string& file, const std::string& line) {
  std::istringstream text("// a file\n" + line + "\n");
  return violations_of(file, text);
}

// The rules themselves, so that a scan which finds nothing means something.
TEST(Layering, RulesCatchWhatTheyForbid) {
  for (const auto& [file, line] : std::vector<std::pair<std::string, std::string>>{
           {"src/key_hash.cpp", "#include \"host/cpu/scan/matrix.h\""},
           {"src/key_hash.cpp", "#include \"client/secrets.h\""},
           {"src/key_hash.cpp", "#include \"src/system/file.h\""},
           {"src/key_hash.cpp", "#include <sys/socket.h>"},
           {"src/key_hash.h", "#include <cuda_runtime.h>"},
           {"src/key_hash.h", "#include \"key_hash.h\""},
           {"src/system/file.cpp", "#include \"host/cpu/scan/matrix.h\""},
           {"host/server/connection.cpp", "#include \"client/secrets.h\""},
           {"host/server/http/server.cpp", "#include \"src/layout.h\""},
           {"host/server/http/server.cpp", "#include \"host/server/routes/api.h\""},
           {"host/server/serving/api_keys.cpp", "#include \"host/server/http/error.h\""},
           {"host/server/serving/api_keys.cpp", "#include \"host/server/routes/problem.h\""},
           {"host/server/routes/api.cpp", "#include \"host/server/service.h\""},
           {"host/server/routes/api.cpp", "#include \"host/server/admin/admin.h\""},
           {"host/server/admin/admin.cpp", "#include \"host/server/routes/api.h\""},
           {"host/main.cpp", "#  include <client/secrets.h>"},
           {"host/main.cpp", "#include \"../client/secrets.h\""},
           {"host/main.cpp", "#include SECRETS"},
           {"cuda/engine.cu", " #include \"client/secrets.h\""},
           {"cuda/engine.cu", "#include \"host/cpu/scan/matrix.h\""},
           {"client/query.cpp", "#include \"host/cpu/scan/matrix.h\""},
           {"client/query.cpp", "#include\"cuda/engine.h\""},
           {"elsewhere/a.cpp", ""}}) {
    EXPECT_NE(violations_in(file, line), "") << file << ": " << line;
  }
}

TEST(Layering, RulesAllowTheRest) {
  for (const auto& [file, line] : std::vector<std::pair<std::string, std::string>>{
           {"src/key_hash.cpp", "#include \"src/sha256.h\""},
           {"src/key_hash.cpp", "#include <openssl/evp.h>"},
           {"src/system/file.cpp", "#include \"src/errors.h\""},
           {"host/server/connection.cpp", "#include <sys/socket.h>"},
           {"host/server/routes/api.cpp", "#include \"host/server/serving/api_keys.h\""},
           {"host/server/service.cpp", "#include \"host/server/routes/api.h\""},
           {"host/engines/engine_factory.cpp", "#include \"cuda/engine.h\""},
           {"cuda/engine.cu", "#include \"src/engine/engine.h\""},
           {"client/query.cpp", "#include \"src/engine/engine.h\""},
           {"client/query.cpp", "// #include \"host/cpu/scan/matrix.h\""}}) {
    EXPECT_EQ(violations_in(file, line), "") << file << ": " << line;
  }
}

}  // namespace
}  // namespace blindfuse
