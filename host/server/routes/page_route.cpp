#include "host/server/routes/page_route.h"

#include <algorithm>
#include <cctype>
#include <string>

#include "host/server/http/resource.h"
#include "host/server/routes/problem.h"

namespace blindfuse {
namespace {

// Whatever the page might be talked into, it loads from and asks only this server, and runs inside
// no other page. 'wasm-unsafe-eval' lets WebAssembly be compiled, and nothing else.
constexpr const char* kContentSecurityPolicy =
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; "
    "connect-src 'self'; style-src 'self'; img-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'";

bool is_equal(std::string_view a, std::string_view lower_case) {
  return std::ranges::equal(a, lower_case, [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) == y;
  });
}

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  return text.substr(0, text.find_last_not_of(" \t") + 1);
}

// Whether a weight, as in ";q=0.5", says never: q=0, q=0.0 and so on.
bool is_never(std::string_view weight) {
  weight = trimmed(weight);
  if (weight.size() < 3 || !is_equal(weight.substr(0, 2), "q=")) return false;
  return weight.find_first_not_of("0.", 2) == std::string_view::npos;
}

// Browsers name gzip; whoever does not, gets the bytes as they are.
bool accepts_gzip(std::string_view accept_encoding) {
  for (size_t begin = 0; begin <= accept_encoding.size();) {
    const size_t end = std::min(accept_encoding.find(',', begin), accept_encoding.size());
    const std::string_view item = accept_encoding.substr(begin, end - begin);
    const size_t semicolon = std::min(item.find(';'), item.size());
    if (is_equal(trimmed(item.substr(0, semicolon)), "gzip")) {
      return semicolon == item.size() || !is_never(item.substr(semicolon + 1));
    }
    begin = end + 1;
  }
  return false;
}

}  // namespace

http::Response answer_page(const std::shared_ptr<const Page>& page,
                           const http::RequestHead& request) {
  if (!page) {
    throw Refusal(ProblemKind::kUnknownRoute,
                  Page::built_in() ? "this server was started without its page (--no-page)"
                                   : "this server was built without its page; `make web` builds "
                                     "one that has it");
  }
  const Page::File* file = page->find(request.path);
  if (file == nullptr) throw Refusal(ProblemKind::kUnknownRoute, "the page has no such file");
  const bool compressed = accepts_gzip(request.list("Accept-Encoding"));
  http::Response response = http::respond_with(
      request, {
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
