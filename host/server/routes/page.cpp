#include "host/server/routes/page.h"

#include <algorithm>

#include "host/server/http/response.h"
#include "host/server/routes/problem.h"
#include "src/base/hex.h"
#include "src/base/utf8.h"
#include "src/protocol/sha256.h"

namespace blindfuse {
namespace {

// Even a page with foreign code loads from and asks only this server, and runs inside no other
// page. 'wasm-unsafe-eval' lets WebAssembly be compiled, and nothing else.
constexpr const char* kContentSecurityPolicy =
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; "
    "connect-src 'self'; style-src 'self'; img-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'";

// True if a weight, as in ";q=0.5", says never: q=0, q=0.0 and so on.
bool is_never(std::string_view weight) {
  weight = http::trimmed(weight);
  if (weight.size() < 3 || !equal_ignoring_case(weight.substr(0, 2), "q=")) return false;
  return weight.find_first_not_of("0.", 2) == std::string_view::npos;
}

// Browsers name gzip. A client that does not gets the bytes as they are.
bool accepts_gzip(std::string_view accept_encoding) {
  for (const std::string_view item : http::list_items(accept_encoding)) {
    const size_t semicolon = std::min(item.find(';'), item.size());
    if (!equal_ignoring_case(http::trimmed(item.substr(0, semicolon)), "gzip")) continue;
    return semicolon == item.size() || !is_never(item.substr(semicolon + 1));
  }
  return false;
}

}  // namespace

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

http::Response answer_page(const ApiRequest& request) {
  const auto& page = request.context.options.page;
  if (!page) {
    throw Refusal(ProblemKind::kUnknownRoute,
                  Page::built_in() ? "this server was started without its page (--no-page)"
                                   : "this server was built without its page; `make web` builds "
                                     "one that has it");
  }
  const Page::File* file = page->find(request.head.path);
  if (file == nullptr) throw Refusal(ProblemKind::kUnknownRoute, "the page has no such file");
  const bool compressed = accepts_gzip(request.head.list("Accept-Encoding"));
  http::Response response = http::respond_with(
      request.head, {
                        .content_type = std::string(file->content.content_type),
                        .entity_tag = compressed ? file->gzip_entity_tag : file->entity_tag,
                        // Another build has other files of the same names, and a page of two builds
                        // would not work.
                        .cache_control = "no-cache",
                        .body = std::make_shared<http::MemoryBody>(
                            compressed ? file->content.gzip_bytes : file->content.bytes, page),
                    });
  response.set_header("Content-Security-Policy", kContentSecurityPolicy);
  response.set_header("X-Content-Type-Options", "nosniff");
  response.set_header("Referrer-Policy", "no-referrer");
  response.set_header("Cross-Origin-Opener-Policy", "same-origin");
  response.set_header("Cross-Origin-Resource-Policy", "same-origin");
  response.set_header("Vary", "Accept-Encoding");
  if (compressed) response.set_header("Content-Encoding", "gzip");
  return response;
}

}  // namespace blindfuse
