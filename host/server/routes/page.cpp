#include "host/server/routes/page.h"

#include <algorithm>

#include "host/server/routes/page_files.h"
#include "src/base/hex.h"
#include "src/protocol/sha256.h"

namespace blindfuse {

Page::Page(std::span<const PageFile> files) {
  for (const PageFile& file : files) {
    const std::string digest = encode_hex(sha256(file.bytes));
    files_.push_back({file, '"' + digest + '"', '"' + digest + "-gzip\""});
  }
}

std::shared_ptr<const Page> Page::built_in() {
  if (embedded_page_files().empty()) return nullptr;
  static const auto page = std::make_shared<const Page>(embedded_page_files());
  return page;
}

const Page::File* Page::find(std::string_view path) const {
  const auto at =
      std::ranges::find_if(files_, [&](const File& file) { return file.content.path == path; });
  return at == files_.end() ? nullptr : &*at;
}

}  // namespace blindfuse
