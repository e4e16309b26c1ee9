#include "client/url.h"

#include <gtest/gtest.h>

#include "src/base/errors.h"

namespace blindfuse {
namespace {

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
    try {
      parse_url(text);
      ADD_FAILURE() << text;
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find("http://127.0.0.1:8080"), std::string::npos);
    }
  }
}

std::string refusal(const char* text) {
  try {
    parse_url(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(Url, APasswordIsRefusedAndNotShown) {
  const std::string said = refusal("https://user:secret@example.org/x");
  EXPECT_NE(said.find("'https://...@example.org'"), std::string::npos) << said;
  EXPECT_NE(said.find("--api-key-file"), std::string::npos) << said;
  EXPECT_EQ(said.find("secret"), std::string::npos) << said;
}

TEST(Url, AUnixSocketIsNamed) {
  EXPECT_NE(refusal("unix:/run/server.socket").find("not to UNIX sockets"), std::string::npos);
}

}  // namespace
}  // namespace blindfuse
