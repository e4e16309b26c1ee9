#include "host/publish/database_writer.h"

#include <utility>

#include "host/database/directory.h"
#include "src/base/errors.h"

namespace blindfuse {
namespace {

std::string entry_of(const DatabaseFolder& folder, const std::string& file) {
  return std::string(folder.name) + "/" + file;
}

std::span<const uint8_t> text_bytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

}  // namespace

NewFile::NewFile(DatabaseWriter& owner, const DatabaseFolder& folder, const OpenFolder& open)
    : owner_(&owner),
      folder_(&folder),
      open_(&open),
      temporary_(temporary_name()),
      writer_(owner.create_pending(open, entry_of(folder, temporary_)), open.path()) {}

NewFile::NewFile(NewFile&& other) noexcept
    : owner_(std::exchange(other.owner_, nullptr)),
      folder_(other.folder_),
      open_(other.open_),
      temporary_(std::move(other.temporary_)),
      writer_(std::move(other.writer_)),
      bytes_(other.bytes_) {}

NewFile::~NewFile() {
  if (owner_ == nullptr || !open_->remove_file(temporary_)) return;
  owner_->journal_.forget_pending(entry_of(*folder_, temporary_));
}

void NewFile::write(std::span<const uint8_t> bytes) {
  writer_.write(bytes);
  bytes_ += bytes.size();
}

void NewFile::write(std::string_view bytes) { write(text_bytes(bytes)); }

void NewFile::sync() {
  writer_.flush();
  sync_file(writer_.file(), open_->path() / temporary_);
}

void NewFile::commit(const Sha256Digest& content) {
  writer_.flush();
  const std::string name = folder_->file_name(content);
  const std::string entry_name = folder_->entry_name(content);
  // If another thread has written the same content meanwhile, the second round finds it.
  for (int round = 0; round < 2; ++round) {
    const auto there = open_->status(name);
    if (there && is_intact(*open_, name, bytes_, content)) return;
    const bool replaces = there && owner_->is_ours(entry_name, *there);
    if (there && !replaces) break;
    owner_->journal_.add_file(entry_name, identity_of(writer_.file(), open_->path()));
    if (replaces) {
      open_->rename_over(temporary_, name);
    } else if (!open_->rename_if_free(temporary_, name)) {
      continue;
    }
    owner_->journal_.forget_pending(entry_of(*folder_, temporary_));
    owner_ = nullptr;
    return;
  }
  throw InputError(
      (open_->path() / name).string() +
      " is in the way: no build made it, and it is not what its name says; move it away");
}

void DatabaseWriter::make_folder(const DatabaseFolder& folder) {
  if (!root_.status(folder.name)) journal_.add_folder(folder.name);
  folders_.insert_or_assign(folder.name, root_.make_folder(folder.name));
}

NewFile DatabaseWriter::create(const DatabaseFolder& folder) {
  return {*this, folder, folders_.at(folder.name)};
}

FileDescriptor DatabaseWriter::create_unnamed() {
  const std::string name = temporary_name();
  FileDescriptor file = create_pending(root_, name);
  if (!root_.remove_file(name))
    throw ResourceError("cannot delete a file in " + root_.path().string());
  journal_.forget_pending(name);
  return file;
}

void DatabaseWriter::replace(const std::string& name, std::string_view text) {
  const std::string temporary = temporary_name();
  BufferedWriter writer(create_pending(root_, temporary), root_.path());
  writer.write(text_bytes(text));
  writer.flush();
  sync_file(writer.file(), root_.path() / name);
  root_.rename_over(temporary, name);
  journal_.forget_pending(temporary);
  root_.sync();
}

FileDescriptor DatabaseWriter::create_pending(const OpenFolder& folder,
                                              const std::string& entry_name) {
  journal_.add_pending(entry_name);
  return folder.create_file(std::string(split_entry(entry_name).file));
}

bool DatabaseWriter::is_ours(const std::string& entry_name, const EntryStatus& status) const {
  return status.kind == EntryKind::kFile &&
         (published_.contains(entry_name) || journal_.names_file(entry_name, status.identity));
}

}  // namespace blindfuse
