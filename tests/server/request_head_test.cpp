#include "host/server/http/request_head.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "host/server/http/response.h"

namespace blindfuse::http {
namespace {

std::string get(const std::string& headers) {
  return "GET /path HTTP/1.1\r\nHost: x\r\n" + headers + "\r\n";
}
std::string post(const std::string& headers) {
  return "POST /path HTTP/1.1\r\nHost: x\r\n" + headers + "\r\n";
}

// The status of a refusal; 0 for a head that passes, -1 for one that is not whole.
int status_of(const std::string& bytes) {
  try {
    return parse_request_head(bytes) ? 0 : -1;
  } catch (const Error& error) {
    return error.status();
  }
}

TEST(RequestHead, SaysWhereTheRequestEnds) {
  const auto none = parse_request_head(get("") + "more");
  ASSERT_TRUE(none);
  EXPECT_EQ(none->byte_count, get("").size());
  EXPECT_EQ(none->method, "GET");
  EXPECT_FALSE(none->has_body());
  EXPECT_FALSE(none->wants_close);

  EXPECT_EQ(parse_request_head(post("content-LENGTH:  12 \r\n"))->content_length, 12u);
  EXPECT_EQ(parse_request_head(post("Content-Length: 18446744073709551615\r\n"))->content_length,
            UINT64_MAX);
  EXPECT_FALSE(parse_request_head(post("Content-Length: 0\r\n"))->has_body());
  EXPECT_TRUE(parse_request_head(post("Transfer-Encoding: Chunked\r\n"))->chunked);
}

TEST(RequestHead, WaitsForAllOfIt) {
  const std::string whole = get("Accept: */*\r\n");
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_EQ(status_of(whole.substr(0, size)), -1);
  EXPECT_EQ(status_of(whole), 0);
}

TEST(RequestHead, KnowsWhenTheConnectionEnds) {
  EXPECT_TRUE(parse_request_head(get("Connection: close\r\n"))->wants_close);
  EXPECT_TRUE(parse_request_head(get("connection: Keep-Alive , Close\r\n"))->wants_close);
  EXPECT_FALSE(parse_request_head(get("Connection: keep-alive\r\n"))->wants_close);
  EXPECT_FALSE(parse_request_head(get("Connection: closed\r\n"))->wants_close);
  EXPECT_TRUE(parse_request_head("GET / HTTP/1.0\r\n\r\n")->wants_close);
}

TEST(RequestHead, KeepsTheHeaders) {
  const auto head = parse_request_head(get("A: b\r\nRANGE:\t bytes=0-3 \r\nC: d\r\n"));
  EXPECT_EQ(head->header("Range"), "bytes=0-3");
  EXPECT_EQ(head->header("a"), "b");
  EXPECT_EQ(head->header("nothing"), "");
  EXPECT_EQ(head->headers.size(), 4u);
}

TEST(RequestHead, TakesTheTargetApart) {
  const auto head = parse_request_head("GET /a%20b?c=%41&d HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(head->path, "/a b");
  EXPECT_EQ(head->query, "c=%41&d");
  using Parameters = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(parse_query(head->query), (Parameters{{"c", "A"}, {"d", ""}}));
  EXPECT_EQ(parse_query(""), Parameters());
  EXPECT_EQ(parse_query("a=1&&a=2=3&=4"), (Parameters{{"a", "1"}, {"a", "2=3"}, {"", "4"}}));
  EXPECT_EQ(status_of("GET /a?b?c HTTP/1.1\r\nHost: x\r\n\r\n"), 400);
}

// RFC 9112, section 3.2.2: as proxies are asked, and a server is to understand.
TEST(RequestHead, TakesUrlsAsTargets) {
  const auto parse = [](const std::string& target) {
    return *parse_request_head("GET " + target + " HTTP/1.1\r\nHost: other\r\n\r\n");
  };
  EXPECT_EQ(parse("http://example.org:8080/a%20b?c=d").path, "/a b");
  EXPECT_EQ(parse("http://example.org:8080/a%20b?c=d").query, "c=d");
  EXPECT_EQ(parse("http://example.org:8080/a%20b?c=d").host, "example.org:8080")
      << "the header Host is ignored";
  EXPECT_EQ(parse("HTTPS://[::1]/a").host, "[::1]");
  EXPECT_EQ(parse("http://example.org").path, "/");
  EXPECT_EQ(parse("http://example.org?c").path, "/");
  EXPECT_EQ(parse("http://example.org?c").query, "c");
  EXPECT_EQ(parse("/a?b=http://c/").path, "/a");
  EXPECT_EQ(parse("/a").host, "other");
  for (const char* target : {"http://", "http:///a", "http://user@example.org/a", "http:/a",
                             "ftp://example.org/a", "://a/b", "example.org:80", "*"}) {
    EXPECT_EQ(status_of("GET " + std::string(target) + " HTTP/1.1\r\nHost: x\r\n\r\n"), 400)
        << target;
  }
  EXPECT_EQ(status_of("GET http://x/ HTTP/1.1\r\n\r\n"), 400) << "Host is there all the same";
}

// RFC 9112, section 2.2: old clients send one after a body.
TEST(RequestHead, PassesOverEmptyLinesBeforeIt) {
  for (const std::string lines : {"\r\n", "\r\n\r\n", "\r\n\r\n\r\n"}) {
    const auto head = parse_request_head(lines + get("") + "more");
    ASSERT_TRUE(head);
    EXPECT_EQ(head->byte_count, lines.size() + get("").size());
    EXPECT_EQ(head->path, "/path");
    EXPECT_EQ(status_of(lines), -1);
    EXPECT_EQ(status_of(lines + "\r"), -1);
    EXPECT_EQ(status_of(lines + "\n"), 400);
    EXPECT_EQ(status_of(lines + " \r\n"), -1);
    EXPECT_EQ(status_of(lines + "nonsense\r\n\r\n"), 400);
  }
  std::string many;
  while (many.size() < kHeadBytesMax) many += "\r\n";
  EXPECT_EQ(status_of(many.substr(2)), -1);
  EXPECT_EQ(status_of(many), 431);
}

TEST(RequestHead, PutsListsTogether) {
  const auto head = parse_request_head(get("A: b\r\na: c, d\r\nB: e\r\n"));
  EXPECT_EQ(head->list("A"), "b, c, d");
  EXPECT_EQ(head->list("C"), "");
  EXPECT_TRUE(parse_request_head(get("Connection: x\r\nConnection: close\r\n"))->wants_close);
}

TEST(RequestHead, RefusesTwoOfWhatThereCanBeOne) {
  for (const char* name :
       {"Range", "Content-Type", "Content-Encoding", "Authorization", "Origin", "Expect", "Host"}) {
    const std::string line = std::string(name) + ": x\r\n";
    EXPECT_EQ(status_of(get(line + line)), 400) << name;
  }
}

TEST(RequestHead, RefusesAmbiguousLengths) {
  for (const std::string length : {"-1", "+1", "1 1", "1,1", "1, 1", "0x10", "", "%31", "1e3",
                                   "18446744073709551616", "99999999999999999999999999999999"}) {
    EXPECT_EQ(status_of(post("Content-Length: " + length + "\r\n")), 400) << length;
  }
  for (const std::string coding : {"gzip, chunked", "chunked, identity", "xchunked", "identity", "",
                                   "chunked\r\nTransfer-Encoding: chunked"}) {
    EXPECT_EQ(status_of(post("Transfer-Encoding: " + coding + "\r\n")), 400) << coding;
  }
  for (const std::string headers :
       {"Content-Length: 1\r\nContent-Length: 1\r\n", "Content-Length: 1\r\nContent-Length: 2\r\n",
        "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", "Content-Length : 1\r\n",
        " Content-Length: 1\r\n", "Content-Length: 1\n\r\n", "Content-Length: 1\nX: a\r\n",
        "X: y\r\n Content-Length: 1\r\n", "Content-Length: 1\r\n folded\r\n"}) {
    EXPECT_EQ(status_of(post(headers)), 400) << headers;
  }
}

TEST(RequestHead, RefusesBrokenLines) {
  for (const char* bytes :
       {"GET\r\n\r\n", "GET /\r\n\r\n", "GET  HTTP/1.1\r\n\r\n", "GET / / HTTP/1.1\r\n\r\n",
        "GET  / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1 \r\n\r\n", " GET / HTTP/1.1\r\n\r\n",
        "G@T / HTTP/1.1\r\n\r\n", "GET path HTTP/1.1\r\nHost: x\r\n\r\n", "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n", "GET / FTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\nHost: x\n\n", "GET / HTTP/1.1\r\nHost\r\n\r\n",
        "GET / HTTP/1.1\r\n: x\r\n\r\n", "GET / HTTP/1.1\r\nHo st: x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\ry\r\n\r\n", "GET / HTTP/1.1\r\nHost: x\r\n\xff\xfe: a\r\n\r\n",
        // Other protocols, by their first bytes, and TLS among them.
        "\x16\x03\x01\x02", "\n"}) {
    EXPECT_EQ(status_of(bytes), 400) << bytes;
  }
  EXPECT_EQ(status_of(std::string("GET / HTTP/1.1\r\nHost: a\0b\r\n\r\n", 28)), 400);
  EXPECT_EQ(status_of(std::string(1, '\0')), 400);
  EXPECT_EQ(status_of("GET / HTTP/2.0\r\nHost: x\r\n\r\n"), 505);
  EXPECT_EQ(status_of("FROB / HTTP/1.1\r\nHost: x\r\n\r\n"), 501);
  EXPECT_EQ(status_of("get / HTTP/1.1\r\nHost: x\r\n\r\n"), 501);
}

TEST(RequestHead, BoundsItsSizes) {
  const auto with_target = [](size_t size) {
    return "GET /" + std::string(size - 1, 'a') + " HTTP/1.1\r\nHost: x\r\n\r\n";
  };
  EXPECT_EQ(status_of(with_target(kTargetBytesMax)), 0);
  EXPECT_EQ(status_of(with_target(kTargetBytesMax + 1)), 414);
  EXPECT_EQ(status_of("GET /" + std::string(kTargetBytesMax + 100, 'a')), 414);

  EXPECT_EQ(status_of(get("A: " + std::string(kHeaderLineBytesMax - 3, 'a') + "\r\n")), 0);
  EXPECT_EQ(status_of(get("A: " + std::string(kHeaderLineBytesMax - 2, 'a') + "\r\n")), 431);

  std::string lines;
  for (size_t i = 1; i < kHeaderLinesMax; ++i) lines += "A: b\r\n";  // next to Host
  EXPECT_EQ(status_of(get(lines)), 0);
  EXPECT_EQ(status_of(get(lines + "A: b\r\n")), 431);

  const auto with_size = [](size_t size) {
    std::string bytes = get("");
    bytes.resize(bytes.size() - 2);
    while (bytes.size() + 2 < size) {
      const size_t left = size - 2 - bytes.size();
      const size_t line = left <= 7'000 ? left : 6'000;
      bytes += "A: " + std::string(line - 5, 'a') + "\r\n";
    }
    return bytes + "\r\n";
  };
  EXPECT_EQ(with_size(kHeadBytesMax).size(), kHeadBytesMax);
  EXPECT_EQ(status_of(with_size(kHeadBytesMax)), 0);
  EXPECT_EQ(status_of(with_size(kHeadBytesMax + 1)), 431);
  EXPECT_EQ(status_of(with_size(kHeadBytesMax + 1).substr(0, kHeadBytesMax)), 431);
  EXPECT_EQ(status_of(with_size(kHeadBytesMax).substr(0, kHeadBytesMax - 1)), -1);
}

}  // namespace
}  // namespace blindfuse::http
