// The files of the demonstration page, which a browser shows, and the client that runs in it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "host/server/http/response.h"
#include "host/server/routes/api.h"

namespace blindfuse {

// Bytes that exist as long as the program runs.
struct PageFile {
  std::string_view path;  // of the request, "/" for the page itself
  std::string_view content_type;
  std::span<const uint8_t> bytes;
  std::span<const uint8_t> gzip_bytes;  // the same, compressed
};

class Page {
 public:
  explicit Page(std::span<const PageFile> files);

  // The page that this program was built with. None if it was built without the client for
  // browsers.
  static std::shared_ptr<const Page> built_in();

  struct File {
    PageFile content;
    std::string entity_tag;  // strong, with its quotes, as is that of what is compressed
    std::string gzip_entity_tag;
  };
  // Returns null if the page has no such path.
  const File* find(std::string_view path) const;

 private:
  std::vector<File> files_;
};

// The files that cmake/page.cmake put into the program. None if the client for browsers was not
// built.
std::span<const PageFile> embedded_page_files();

// The file of the page at the request's path, compressed if its Accept-Encoding allows it, with the
// headers that keep a browser from loading anything else. Throws Refusal: 404 if there is no such
// file, or no page.
http::Response answer_page(const ApiRequest& request);

}  // namespace blindfuse
