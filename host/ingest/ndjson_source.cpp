#include "host/ingest/ndjson_source.h"

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

namespace blindfuse {

namespace {

// Numbers of members that are skipped may be beyond the range of a double.
using Json =
    nlohmann::basic_json<std::map, std::vector, std::string, bool, int64_t, uint64_t, long double>;

constexpr std::string_view kExpected = "; expected one JSON object a line";

// One member to look for in the object.
struct Member {
  std::string_view name;
  std::string_view option;  // of the program, which names another one
  std::string& text;        // its value goes here
  bool is_found = false;
  bool is_current = false;  // its name was just read, its value comes next
};

// Takes the wanted members out of one line while it is parsed. Nothing is built for the rest of the
// line, and the parser keeps its nesting on the heap, so that no line can exhaust the stack.
class MemberHandler : public nlohmann::json_sax<Json> {
 public:
  MemberHandler(Member* key, Member* value) : key_(key), value_(value) {}

  // The fault of the line; empty when there is none.
  const std::string& problem() const { return problem_; }

  bool key(string_t& name) override {
    return depth_ != 1 || (expect(key_, name) && expect(value_, name));
  }

  bool string(string_t& text) override {
    if (depth_ == 0) return reject("a string");
    for (Member* member : {key_, value_}) {
      if (member == nullptr || !member->is_current) continue;
      member->text = text;
      member->is_current = false;
    }
    return true;
  }

  bool null() override { return reject("null"); }
  bool boolean(bool value) override { return reject(value ? "true" : "false"); }
  bool number_integer(number_integer_t) override { return reject("a number"); }
  bool number_unsigned(number_unsigned_t) override { return reject("a number"); }
  bool number_float(number_float_t, const string_t&) override { return reject("a number"); }
  bool binary(binary_t&) override { return reject("binary"); }

  bool start_object(std::size_t) override {
    return (depth_ == 0 || reject("an object")) && descend();
  }
  bool end_object() override { return ascend(); }
  bool start_array(std::size_t) override { return reject("an array") && descend(); }
  bool end_array() override { return ascend(); }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override;

 private:
  bool fail(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }

  bool expect(Member* member, std::string_view name) {
    if (member == nullptr || member->name != name) return true;
    if (member->is_found) {
      return fail("member " + quoted(name) + " twice; expected it once");
    }
    member->is_found = true;
    member->is_current = true;
    return true;
  }

  // False where `found`, which is not a string, stands for a wanted member or for the object.
  bool reject(const char* found) {
    if (depth_ == 0) return fail(std::string(found) + std::string(kExpected));
    for (const Member* member : {key_, value_}) {
      if (member == nullptr || !member->is_current) continue;
      return fail("member " + quoted(member->name) + " is " + found + "; expected a string");
    }
    return true;
  }

  bool descend() {
    if (++depth_ <= NdjsonSource::kMaxDepth) return true;
    return fail("values nested too deep; expected at most " +
                std::to_string(NdjsonSource::kMaxDepth) + " levels");
  }

  bool ascend() {
    --depth_;
    return true;
  }

  Member* key_;  // nothing for an index database
  Member* value_;
  size_t depth_ = 0;
  std::string problem_;
};

// The parser's message is "[json.exception.parse_error.101] parse error at line 1, column 4: syntax
// error while parsing value - invalid literal; last read: '{"ke'". Its middle is worth showing. The
// rest is noise or repeats the data.
std::string_view parser_reason(std::string_view words) {
  words = words.substr(0, words.find("; last read"));
  for (const std::string_view prefix : {"] ", ": "}) {
    const size_t at = words.find(prefix);
    if (at != std::string_view::npos) words.remove_prefix(at + prefix.size());
  }
  return words;
}

bool MemberHandler::parse_error(std::size_t position, const std::string&,
                                const nlohmann::detail::exception& error) {
  // Syntax errors are the parser's own words; the others, about numbers, quote the data.
  constexpr int kSyntaxError = 101;
  const size_t max_bytes = error.id == kSyntaxError ? 3 * kExcerptBytes : kExcerptBytes;
  return fail("bad JSON at byte " + std::to_string(position) + " (" +
              printable(parser_reason(error.what()), max_bytes) + ")" + std::string(kExpected));
}

// Returns an empty text when the members that are not null are filled.
std::string parse_members(std::string_view text, Member* key, Member* value) {
  // The parser would take a zero byte for the end of the text.
  const size_t zero = text.find('\0');
  if (zero != std::string_view::npos) {
    return "a zero byte at byte " + std::to_string(zero + 1) + std::string(kExpected);
  }
  MemberHandler handler(key, value);
  if (!Json::sax_parse(text.begin(), text.end(), &handler)) return handler.problem();
  for (const Member* member : {key, value}) {
    if (member != nullptr && !member->is_found) {
      return "no member " + quoted(member->name) +
             "; expected it in every object; choose one with " + std::string(member->option);
    }
  }
  return {};
}

}  // namespace

NdjsonSource::NdjsonSource(LineReader lines, const SourceOptions& options)
    : lines_(std::move(lines)),
      index_(options.index),
      key_field_(options.key_column),
      value_field_(options.value_column),
      key_(key_decoder(options.key_encoding)),
      value_(value_decoder(options.value_encoding)) {}

bool NdjsonSource::next(KeyValuePair& pair) {
  Line line;
  if (!next_object_line(line)) return false;
  const InputPlace place{name(), place_unit(), line.number};
  Member key{key_field_, "--key-column", key_text_};
  Member value{value_field_, "--value-column", value_text_};
  const std::string problem = parse_members(line.text, index_ ? nullptr : &key, &value);
  if (!problem.empty()) fail_input(place, problem);
  pair.place = line.number;
  pair.key = index_ ? std::string_view() : key_.decode(key_text_, place);
  pair.value = value_.decode(value_text_, place);
  return true;
}

bool NdjsonSource::next_object_line(Line& line) {
  constexpr std::string_view kBlanks = " \t\r";  // white space of JSON, except \n
  while (lines_.next(line)) {
    if (line.text.find_first_not_of(kBlanks) != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace blindfuse
