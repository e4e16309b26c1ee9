// The page for browsers, over HTTP: what each file is sent with. The files are the test's own, so
// that this holds with and without a built client.
#include "host/server/routes/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/hex.h"
#include "src/protocol/sha256.h"
#include "tests/server/running_server.h"

namespace blindfuse::server_testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::span<const uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// It is not unpacked here: any bytes will do.
constexpr std::string_view kIndex = "<!doctype html><title>page</title>";
constexpr std::string_view kPackedIndex = "\x1f\x8bpacked page";
constexpr std::string_view kModule = "export const answer = 42;";
constexpr std::string_view kPackedModule = "\x1f\x8bpacked module";
constexpr std::string_view kCore("\0asm\1\0\0\0", 8);
constexpr std::string_view kPackedCore = "\x1f\x8bpacked core";

std::shared_ptr<const Page> test_page() {
  const PageFile files[] = {
      {"/", "text/html; charset=utf-8", bytes_of(kIndex), bytes_of(kPackedIndex)},
      {"/page/page.js", "text/javascript; charset=utf-8", bytes_of(kModule),
       bytes_of(kPackedModule)},
      {"/client/core.wasm", "application/wasm", bytes_of(kCore), bytes_of(kPackedCore)},
  };
  return std::make_shared<const Page>(files);
}

class PageRoute : public RunningServer {
 protected:
  static ServerOptions page_options() {
    ServerOptions options = default_options();
    options.api.page = test_page();
    return options;
  }
};

TEST_F(PageRoute, SendsEachFileAsWhatItIs) {
  start(page_options());
  const std::tuple<const char*, const char*, std::string_view> expected[] = {
      {"/", "text/html; charset=utf-8", kIndex},
      {"/page/page.js", "text/javascript; charset=utf-8", kModule},
      {"/client/core.wasm", "application/wasm", kCore},
  };
  LoopbackClient client(url());
  for (const auto& [path, type, body] : expected) {
    const HttpResponse response = client.ask(get_request(path));
    EXPECT_EQ(response.status, 200) << path;
    EXPECT_EQ(response.header("content-type"), type);
    EXPECT_EQ(response.body, body);
    EXPECT_FALSE(response.has("content-encoding"));
    EXPECT_EQ(response.header("cache-control"), "no-cache");
    EXPECT_EQ(response.header("vary"), "Accept-Encoding");
  }
  EXPECT_EQ(client.ask(get_request("/?anything=1")).body, kIndex);
}

TEST_F(PageRoute, LetsTheBrowserLoadNothingElse) {
  start(page_options());
  for (const char* path : {"/", "/page/page.js", "/client/core.wasm"}) {
    const HttpResponse response = ask(get_request(path));
    const std::string policy = response.header("content-security-policy");
    EXPECT_THAT(policy, HasSubstr("default-src 'none'"));
    EXPECT_THAT(policy, HasSubstr("script-src 'self' 'wasm-unsafe-eval';"));
    EXPECT_THAT(policy, HasSubstr("frame-ancestors 'none'"));
    EXPECT_THAT(policy, Not(HasSubstr("unsafe-inline")));
    EXPECT_THAT(policy, Not(HasSubstr("*")));
    EXPECT_THAT(policy, Not(HasSubstr("http")));
    EXPECT_EQ(response.header("x-content-type-options"), "nosniff");
    EXPECT_EQ(response.header("referrer-policy"), "no-referrer");
    EXPECT_EQ(response.header("cross-origin-opener-policy"), "same-origin");
  }
}

TEST_F(PageRoute, CompressesForWhomThatSuits) {
  start(page_options());
  LoopbackClient client(url());
  for (const char* accepted : {"gzip", "GZIP", "gzip, deflate, br, zstd", "br;q=1.0, gzip;q=0.8",
                               "deflate,gzip;q=0.001", "gzip ; q=1"}) {
    const std::string header = "Accept-Encoding: " + std::string(accepted) + "\r\n";
    const HttpResponse response = client.ask(get_request("/", header));
    EXPECT_EQ(response.header("content-encoding"), "gzip") << accepted;
    EXPECT_EQ(response.body, kPackedIndex);
    EXPECT_EQ(response.header("content-type"), "text/html; charset=utf-8");
    EXPECT_EQ(response.header("vary"), "Accept-Encoding");
  }
  for (const char* accepted :
       {"", "identity", "br", "gzip;q=0", "gzip; q=0.000", "xgzip", "gzipped", "br, gzip;q=0.0"}) {
    const std::string header = "Accept-Encoding: " + std::string(accepted) + "\r\n";
    const HttpResponse response = client.ask(get_request("/", header));
    EXPECT_FALSE(response.has("content-encoding")) << accepted;
    EXPECT_EQ(response.body, kIndex);
  }
  const std::string lines = "Accept-Encoding: br\r\nAccept-Encoding: gzip\r\n";
  EXPECT_EQ(client.ask(get_request("/", lines)).body, kPackedIndex) << "two lines are one list";
}

TEST_F(PageRoute, SendsNothingTwice) {
  start(page_options());
  const std::string gzip = "Accept-Encoding: gzip\r\n";
  const std::string tag = ask(get_request("/")).header("etag");
  const std::string gzip_tag = ask(get_request("/", gzip)).header("etag");
  EXPECT_EQ(tag, '"' + encode_hex(sha256(bytes_of(kIndex))) + '"');
  EXPECT_NE(tag, gzip_tag) << "other bytes, another strong tag";
  EXPECT_NE(tag, ask(get_request("/page/page.js")).header("etag"));
  const auto status = [&](const std::string& accepted, const std::string& known) {
    const HttpResponse response =
        ask(get_request("/", accepted + "If-None-Match: " + known + "\r\n"));
    EXPECT_EQ(response.body.empty(), response.status == 304);
    EXPECT_TRUE(response.has("content-security-policy"));
    return response.status;
  };
  EXPECT_EQ(status("", tag), 304);
  EXPECT_EQ(status(gzip, gzip_tag), 304);
  EXPECT_EQ(status("", gzip_tag), 200);
  EXPECT_EQ(status("", "\"other\""), 200);
}

TEST_F(PageRoute, AnswersHeadAndNoOtherMethod) {
  start(page_options());
  LoopbackClient client(url());
  client.send(get_request("/", "", "HEAD"));
  const HttpResponse head = client.receive(true);
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.header("content-length"), std::to_string(kIndex.size()));
  EXPECT_EQ(head.header("content-type"), "text/html; charset=utf-8");
  EXPECT_EQ(client.ask(get_request("/")).body, kIndex) << "nothing came after the header";
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS"}) {
    const HttpResponse response = ask(get_request("/", "", method));
    EXPECT_EQ(response.status, 405) << method;
    EXPECT_EQ(response.header("allow"), "GET, HEAD");
  }
}

TEST_F(PageRoute, HasNoOtherFiles) {
  start(page_options());
  LoopbackClient client(url());
  for (const char* path :
       {"/index.html", "/page", "/page/", "/page/index.html", "/client/", "/client/../page/page.js",
        "/page/../../etc/passwd", "/page/%2e%2e/%2e%2e/etc/passwd", "/page//page.js",
        "/page/page.js/", "/page/page.js%00", "/PAGE/page.js", "/client/core.wasm.gz", "//"}) {
    const HttpResponse response = client.ask(get_request(path));
    SCOPED_TRACE(path);
    expect_problem(response, 404, "unknown-route");
    EXPECT_EQ(response.header("cache-control"), "no-store");
  }
}

TEST_F(PageRoute, IsNotThereWhenItIsNotWanted) {
  start();
  for (const char* path : {"/", "/page/page.js", "/client/core.wasm"}) {
    const HttpResponse response = ask(get_request(path));
    SCOPED_TRACE(path);
    expect_problem(response, 404, "unknown-route");
    EXPECT_THAT(response.detail(),
                Page::built_in() ? HasSubstr("--no-page") : HasSubstr("make web"));
  }
}

TEST_F(PageRoute, NeedsNoKey) {
  start(with_keys(page_options()));
  for (const char* path : {"/", "/page/page.js", "/client/core.wasm"}) {
    EXPECT_EQ(ask(get_request(path)).status, 200) << path;
  }
  EXPECT_EQ(ask(get_request("/v1/database")).status, 401);
  EXPECT_EQ(metric("blindfuse_http_requests_total{route=\"page\",status=\"200\"}"), 3);
}

TEST_F(PageRoute, VariesWithTheOriginToo) {
  ServerOptions options = page_options();
  options.api.cors_origins = {"https://one.example"};
  start(options);
  const HttpResponse response =
      ask(get_request("/client/core.wasm", "Origin: https://one.example\r\n"));
  EXPECT_EQ(response.header("vary"), "Accept-Encoding, Origin");
  EXPECT_EQ(response.header("access-control-allow-origin"), "https://one.example");
}

TEST_F(PageRoute, IsDescribedWhereItIs) {
  start(page_options());
  const auto paths = nlohmann::json::parse(ask(get_request("/openapi.json")).body).at("paths");
  const auto& answers = paths.at("/").at("get").at("responses");
  EXPECT_TRUE(answers.at("200").at("content").contains("text/html"));
}

// What cmake/page.cmake put into the program, where it had a client to put there.
TEST(BuiltInPage, HasAllThatItNames) {
  const auto page = Page::built_in();
  if (!page) GTEST_SKIP() << "the server was built without its page: there is no Emscripten (em++)";
  for (const char* path : {"/", "/page/page.css", "/page/page.js", "/page/icon.svg",
                           "/client/blindfuse.js", "/client/blindfuse_core.wasm"}) {
    const Page::File* file = page->find(path);
    ASSERT_NE(file, nullptr) << path;
    EXPECT_FALSE(file->content.bytes.empty()) << path;
    ASSERT_GT(file->content.gzip_bytes.size(), 2u) << path;
    EXPECT_EQ(file->content.gzip_bytes[0], 0x1f) << path;
    EXPECT_EQ(file->content.gzip_bytes[1], 0x8b) << path;
  }
  const auto index = page->find("/")->content.bytes;
  const std::string text(index.begin(), index.end());
  EXPECT_THAT(text, HasSubstr("page/page.js"));
  EXPECT_THAT(text, Not(HasSubstr("=\"/"))) << "behind a proxy the page may lie deeper";
  EXPECT_THAT(text, Not(HasSubstr("://"))) << "nothing from elsewhere";
}

}  // namespace
}  // namespace blindfuse::server_testing
