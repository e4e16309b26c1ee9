#include "host/database/build_journal.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>

#include "host/database/directory.h"
#include "src/base/errors.h"

namespace blindfuse {
namespace {

// A line takes 200 bytes at most, and a build of the largest database writes a million.
constexpr uint64_t kJournalBytesMax = uint64_t{1} << 30;

constexpr std::string_view kFolderWord = "folder ";
constexpr std::string_view kPendingWord = "pending ";
constexpr std::string_view kFileWord = "file ";

// Takes a prefix off.
bool take_word(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

template <typename Integer>
std::optional<Integer> take_number(std::string_view& text) {
  Integer number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

std::optional<FileIdentity> parse_identity(std::string_view text) {
  const auto inode = take_number<uint64_t>(text);
  if (!inode || !take_word(text, " ")) return std::nullopt;
  const auto written_ns = take_number<int64_t>(text);
  if (!written_ns || !take_word(text, " ")) return std::nullopt;
  const auto bytes = take_number<uint64_t>(text);
  if (!bytes || !text.empty()) return std::nullopt;
  return FileIdentity{*inode, *written_ns, *bytes};
}

bool is_pending_name(std::string_view name) {
  const DatabaseEntry entry = split_entry(name);
  return (entry.folder.empty() || find_database_folder(entry.folder) != nullptr) &&
         is_temporary_name(entry.file);
}

bool names(const std::map<std::string, std::vector<FileIdentity>>& files, const std::string& name,
           const FileIdentity& identity) {
  const auto found = files.find(name);
  return found != files.end() && std::ranges::count(found->second, identity) > 0;
}

std::string header_of(const OpenFolder& root) {
  return "blindfuse build journal 1 " + root.identity() + "\n";
}

}  // namespace

BuildJournal::BuildJournal(const OpenFolder& root) : root_(root), header_(header_of(root)) {
  read();
}

void BuildJournal::read() {
  const auto status = root_.status(kFileName);
  if (!status) return;
  const std::filesystem::path path = root_.path() / kFileName;
  if (status->kind != EntryKind::kFile) {
    throw InputError(path.string() + " is not a file: move it away");
  }
  if (status->identity.bytes > kJournalBytesMax) {
    throw InputError(path.string() + " is too long for a build's journal: move it away");
  }
  FileDescriptor file = root_.open_file(kFileName, O_RDWR | O_APPEND);
  const auto read_first = [&](uint64_t bytes) {
    std::string text(std::min(bytes, status->identity.bytes), '\0');
    read_exactly(file, 0, {reinterpret_cast<uint8_t*>(text.data()), text.size()}, path);
    return text;
  };
  // The whole is read only once it is known to be a journal.
  const std::string begin = read_first(header_.size());
  if (begin != header_) {
    // A build that was killed while it wrote the header had made nothing yet; on a machine that
    // lost power, zeros may be in place of what had not arrived. The file stays closed, since it
    // may as well be somebody's, under a second name (a hard link).
    if (is_unfinished(begin, status->identity.bytes)) return;
    throw InputError(path.string() +
                     " is not the journal of a build in this directory: it came with a copy, or is "
                     "another program's; delete it, and build again");
  }
  const std::string text = read_first(status->identity.bytes);
  file_ = std::move(file);
  has_header_ = true;
  std::string_view rest = std::string_view(text).substr(header_.size());
  for (size_t end; (end = rest.find('\n')) != std::string_view::npos; rest.remove_prefix(end + 1)) {
    take(rest.substr(0, end));
  }
  ends_in_mid_line_ = !rest.empty();
  inherited_ = files_;
}

// True if a file of this length, of which these bytes are the first, began to be a journal.
bool BuildJournal::is_unfinished(std::string_view begin, uint64_t file_bytes) const {
  if (begin.size() == file_bytes && header_.starts_with(begin)) return true;
  const size_t written = begin.find('\0');
  return written != std::string_view::npos && header_.starts_with(begin.substr(0, written)) &&
         begin.find_first_not_of('\0', written) == std::string_view::npos;
}

void BuildJournal::take(std::string_view line) {
  if (take_word(line, kFolderWord)) {
    if (find_database_folder(line) != nullptr) folders_.emplace(line);
  } else if (take_word(line, kPendingWord)) {
    if (is_pending_name(line)) pending_.emplace(line);
  } else if (take_word(line, kFileWord)) {
    const size_t space = line.find(' ');
    if (space == std::string_view::npos) return;
    const auto identity = parse_identity(line.substr(space + 1));
    const std::string_view name = line.substr(0, space);
    if (identity && is_content_name(name)) files_[std::string(name)].push_back(*identity);
  }
}

void BuildJournal::append(std::string_view line) {
  const std::filesystem::path path = root_.path() / kFileName;
  if (!file_.is_open()) {
    root_.remove_file(kFileName);  // one without a header
    root_.create_file(kFileName);
    file_ = root_.open_file(kFileName, O_RDWR | O_APPEND);
  }
  std::string text;
  if (!has_header_) {
    if (ftruncate(file_.get(), 0) != 0) {
      throw ResourceError("cannot write to " + path.string() + ": " + std::strerror(errno));
    }
    text = header_;
  }
  if (ends_in_mid_line_) text += '\n';
  text.append(line).append("\n");
  // The text is written in one call, so that a killed process leaves whole lines, or nearly.
  const ssize_t put = ::write(file_.get(), text.data(), text.size());
  ends_in_mid_line_ = put != static_cast<ssize_t>(text.size());
  if (ends_in_mid_line_) {
    throw ResourceError("cannot write to " + path.string() + ": " +
                        (put < 0 ? std::strerror(errno) : "the disk is full"));
  }
  has_header_ = true;
}

void BuildJournal::add_folder(const std::string& name) {
  const std::lock_guard lock(mutex_);
  append(std::string(kFolderWord) + name);
  folders_.insert(name);
}

void BuildJournal::add_pending(const std::string& name) {
  const std::lock_guard lock(mutex_);
  append(std::string(kPendingWord) + name);
  pending_.insert(name);
}

void BuildJournal::add_file(const std::string& name, const FileIdentity& identity) {
  const std::lock_guard lock(mutex_);
  append(std::string(kFileWord) + name + " " + std::to_string(identity.inode) + " " +
         std::to_string(identity.written_ns) + " " + std::to_string(identity.bytes));
  files_[name].push_back(identity);
}

void BuildJournal::forget_pending(const std::string& name) {
  const std::lock_guard lock(mutex_);
  pending_.erase(name);
}

bool BuildJournal::names_folder(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  return folders_.contains(name);
}

bool BuildJournal::names_pending(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  return pending_.contains(name);
}

bool BuildJournal::names_file(const std::string& name, const FileIdentity& identity) const {
  const std::lock_guard lock(mutex_);
  return names(files_, name, identity);
}

bool BuildJournal::is_inherited(const std::string& name, const FileIdentity& identity) const {
  return names(inherited_, name, identity);
}

void BuildJournal::remove() {
  const std::lock_guard lock(mutex_);
  root_.remove_file(kFileName);
  file_ = {};
}

}  // namespace blindfuse
