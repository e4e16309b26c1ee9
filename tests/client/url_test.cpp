#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "client/cache_folder.h"
#include "client/url.h"
#include "src/base/errors.h"
#include "tests/client/client_testing.h"

namespace blindfuse {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string refusal(const char* text) {
  return message_of<InputError>([text] { parse_url(text); });
}

TEST(Url, HasItsParts) {
  const Url url = parse_url("https://Example.ORG:8443/words/en/");
  EXPECT_TRUE(url.secure);
  EXPECT_EQ(url.host, "example.org");
  EXPECT_EQ(url.port, 8443);
  EXPECT_EQ(url.prefix, "/words/en");
  EXPECT_EQ(url.text(), "https://example.org:8443/words/en");
}

TEST(Url, OneAddressHasOneText) {
  for (const char* text : {"http://a.b", "HTTP://A.b/", "http://a.b:80", "http://a.b:80//"}) {
    EXPECT_EQ(parse_url(text).text(), "http://a.b") << text;
  }
  EXPECT_EQ(parse_url("https://a.b:443/").text(), "https://a.b");
  EXPECT_EQ(parse_url("http://a.b:443").text(), "http://a.b:443");
}

TEST(Url, TakesAddresses) {
  EXPECT_EQ(parse_url("http://127.0.0.1:8080").host, "127.0.0.1");
  const Url six = parse_url("http://[::1]:8080/x");
  EXPECT_EQ(six.host, "::1");
  EXPECT_EQ(six.port, 8080);
  EXPECT_EQ(six.text(), "http://[::1]:8080/x");
  EXPECT_EQ(parse_url("http://[FE80::1]").text(), "http://[fe80::1]");
}

TEST(Url, RefusesTheRestAndSaysWhatIsRight) {
  for (const char* text : {"",
                           "words",
                           "127.0.0.1:8080",
                           "ftp://a.b",
                           "http://",
                           "http:///x",
                           "http://a.b:",
                           "http://a.b:0",
                           "http://a.b:65536",
                           "http://a.b:8o",
                           "http://a b",
                           "http://user:pw@a.b",
                           "http://a.b/x?y=1",
                           "http://a.b/#x",
                           "http://a.b/x y",
                           "http://a.b/x\r\nHost: c",
                           "http://[::1",
                           "http://[::g]",
                           "http://[::1]x:80",
                           "http://a.b:80:80"}) {
    EXPECT_THAT(refusal(text), HasSubstr("http://127.0.0.1:8080")) << text;
  }
}

TEST(Url, APasswordIsRefusedAndNotShown) {
  EXPECT_THAT(refusal("https://user:secret@example.org/x"),
              testing::AllOf(HasSubstr("'https://...@example.org'"), HasSubstr("--api-key-file"),
                             Not(HasSubstr("secret"))));
  EXPECT_THAT(refusal("unix:/run/server.socket"), HasSubstr("not to UNIX sockets"));
}

TEST(CacheFolder, FollowsTheEnvironment) {
  const char* const before_cache = std::getenv("XDG_CACHE_HOME");
  const std::string saved = before_cache == nullptr ? "" : before_cache;
  setenv("XDG_CACHE_HOME", "/somewhere", 1);
  EXPECT_EQ(default_cache_folder(), "/somewhere/blindfuse");
  setenv("XDG_CACHE_HOME", "relative", 1);
  EXPECT_EQ(default_cache_folder(),
            std::filesystem::path(std::getenv("HOME")) / ".cache" / "blindfuse");
  unsetenv("XDG_CACHE_HOME");
  if (before_cache != nullptr) setenv("XDG_CACHE_HOME", saved.c_str(), 1);
}

TEST(CacheFolder, IsNamedAfterTheAddress) {
  // printf http://127.0.0.1:8080 | sha256sum
  EXPECT_EQ(database_folder("/cache", "http://127.0.0.1:8080"),
            "/cache/d30a576c0318716717366ab932e3d7df");
}

}  // namespace
}  // namespace blindfuse
