#include "tests/programs/crashed_disk.h"

#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "tests/publish/builder_testing.h"

namespace blindfuse::program_testing {
namespace {

constexpr uint64_t kBlockBytes = 4096;

uint64_t inode_of(const std::filesystem::path& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) throw std::runtime_error("cannot see " + path.string());
  return status.st_ino;
}

void write_at(std::string& content, uint64_t offset, std::string_view data) {
  content.resize(std::max<size_t>(content.size(), offset + data.size()), '\0');
  content.replace(offset, data.size(), data);
}

}  // namespace

struct CrashedDisk::Node {
  // To a file: its size, or bytes at an offset.
  struct Write {
    std::optional<uint64_t> truncated_to = {};
    uint64_t offset = 0;
    std::string_view data = {};
  };
  // To a folder: what an entry is now, nullptr for none. Those of one record are one change.
  struct EntryChange {
    size_t record = 0;
    std::string name;
    SharedNode node;
  };
  using EntryMap = std::map<std::string, SharedNode>;

  static void apply(const Write& write, std::string& content) {
    if (write.truncated_to) {
      content.resize(*write.truncated_to, '\0');
    } else {
      write_at(content, write.offset, write.data);
    }
  }
  static void apply(const EntryChange& change, EntryMap& entries) {
    if (change.node) {
      entries[change.name] = change.node;
    } else {
      entries.erase(change.name);
    }
  }
  void sync() {
    for (const Write& write : writes) apply(write, content);
    for (const EntryChange& change : changes) apply(change, entries);
    writes.clear();
    changes.clear();
  }

  bool is_folder = false;
  // What was synced, and what was not.
  std::string content;
  std::vector<Write> writes;
  EntryMap entries;
  std::vector<EntryChange> changes;
};

struct CrashedDisk::Choice {
  bool toss() const { return random() % 2 == 0; }

  // The data that arrived: some blocks of some writes.
  std::string content_of(const Node& file) const {
    std::string content = file.content;
    for (const Node::Write& write : file.writes) {
      if (write.truncated_to) {
        if (toss()) Node::apply(write, content);
        continue;
      }
      const uint64_t end = write.offset + write.data.size();
      // The size may have arrived where the data has not.
      if (toss() && content.size() < end) content.resize(end, '\0');
      for (uint64_t at = write.offset; at < end;) {
        const uint64_t next = std::min((at / kBlockBytes + 1) * kBlockBytes, end);
        if (toss()) write_at(content, at, write.data.substr(at - write.offset, next - at));
        at = next;
      }
    }
    return content;
  }

  Node::EntryMap entries_of(const Node& folder) const {
    Node::EntryMap kept = folder.entries;
    const size_t first_ones = random() % (folder.changes.size() + 1);
    bool keeps = false;
    for (size_t i = 0; i < folder.changes.size(); ++i) {
      const bool goes_on = i > 0 && folder.changes[i].record == folder.changes[i - 1].record;
      if (!goes_on) keeps = entries == Entries::kAny ? toss() : i < first_ones;
      if (keeps) Node::apply(folder.changes[i], kept);
    }
    return kept;
  }

  Entries entries;
  std::mt19937& random;
};

CrashedDisk::CrashedDisk(const std::filesystem::path& folder) : root_(scan(folder)) {}

CrashedDisk::~CrashedDisk() = default;

CrashedDisk::SharedNode CrashedDisk::scan(const std::filesystem::path& path) {
  const auto node = std::make_shared<Node>();
  nodes_[inode_of(path)] = node;
  all_.push_back(node);
  node->is_folder = std::filesystem::is_directory(path);
  if (!node->is_folder) {
    node->content = builder_testing::read_whole(path);
    return node;
  }
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    node->entries[entry.path().filename()] = scan(entry.path());
  }
  return node;
}

void CrashedDisk::read_journal(const std::filesystem::path& journal) {
  std::ifstream in(journal, std::ios::binary);
  Record next;
  while (in.read(reinterpret_cast<char*>(&next.record), sizeof next.record)) {
    next.name.resize(next.record.name_bytes);
    next.other_name.resize(next.record.other_name_bytes);
    next.data.resize(next.record.data_bytes);
    for (std::string* text : {&next.name, &next.other_name, &next.data}) {
      in.read(text->data(), static_cast<std::streamsize>(text->size()));
    }
    if (!in) throw std::runtime_error("the journal of the disk is cut off");
    records_.push_back(next);
  }
}

void CrashedDisk::advance(size_t count) {
  while (played_ < count) play(records_[played_++]);
}

void CrashedDisk::write_state(Entries entries, std::mt19937& random,
                              const std::filesystem::path& folder) const {
  write_folder(*root_, {entries, random}, folder);
}

// What is done to files elsewhere is passed over.
void CrashedDisk::play(const Record& record) {
  const DiskRecord& what = record.record;
  switch (what.kind) {
    case DiskRecord::kCreate:
    case DiskRecord::kMakeFolder: {
      // A new one, even if its inode's number was another's before.
      const auto node = std::make_shared<Node>();
      node->is_folder = what.kind == DiskRecord::kMakeFolder;
      nodes_[what.second] = node;
      all_.push_back(node);
      return set_entry(what.first, record.name, node);
    }
    case DiskRecord::kRename: {
      const SharedNode node = entry_now(what.first, record.name);
      set_entry(what.first, record.name, nullptr);
      return set_entry(what.second, record.other_name, node);
    }
    case DiskRecord::kRemove:
      return set_entry(what.first, record.name, nullptr);
    case DiskRecord::kTruncate:
      if (Node* file = find(what.first)) file->writes.push_back({.truncated_to = what.second});
      return;
    case DiskRecord::kWrite:
      if (Node* file = find(what.first)) {
        file->writes.push_back({.offset = what.second, .data = record.data});
      }
      return;
    case DiskRecord::kSync:
      if (Node* node = find(what.first)) node->sync();
      return;
    case DiskRecord::kSyncAll:
      for (const SharedNode& node : all_) node->sync();
      return;
  }
  throw std::runtime_error("the journal of the disk has a record of no kind");
}

CrashedDisk::Node* CrashedDisk::find(uint64_t inode) const {
  const auto at = nodes_.find(inode);
  return at == nodes_.end() ? nullptr : at->second.get();
}

CrashedDisk::SharedNode CrashedDisk::entry_now(uint64_t folder, const std::string& name) const {
  const Node* node = find(folder);
  if (node == nullptr) return nullptr;
  Node::EntryMap entries = node->entries;
  for (const auto& change : node->changes) Node::apply(change, entries);
  const auto at = entries.find(name);
  return at == entries.end() ? nullptr : at->second;
}

void CrashedDisk::set_entry(uint64_t folder, const std::string& name, const SharedNode& node) {
  if (Node* at = find(folder)) at->changes.push_back({played_, name, node});
}

void CrashedDisk::write_folder(const Node& node, const Choice& choice,
                               const std::filesystem::path& path) {
  std::filesystem::create_directory(path);
  for (const auto& [name, entry] : choice.entries_of(node)) {
    if (entry->is_folder) {
      write_folder(*entry, choice, path / name);
    } else {
      std::ofstream(path / name, std::ios::binary) << choice.content_of(*entry);
    }
  }
}

}  // namespace blindfuse::program_testing
