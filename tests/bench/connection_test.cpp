#include "bench/load/connection.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include "tests/client/raw_server.h"

namespace blindfuse::load {
namespace {

// A connection to a server, and coroutines that run until they end.
class ConnectionTest : public ::testing::Test {
 protected:
  template <typename T>
  T run(Awaitable<T> coroutine) {
    auto result = boost::asio::co_spawn(io_, std::move(coroutine), boost::asio::use_future);
    io_.restart();
    io_.run();
    return result.get();
  }

  void connect_to(const RawServer& server) {
    endpoint_.emplace(parse_url(server.url()), "");
    connection_.emplace(io_, *endpoint_);
    run(connection_->open());
  }

  // The first looks which of the host's addresses is listening.
  static std::function<void(int)> answering(std::string answer) {
    return [answer = std::move(answer)](int connection) {
      if (read_head(connection).empty()) return;
      send_all(connection, answer);
      read_all(connection);
    };
  }

  Response ask() { return run(connection_->ask("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")); }

  boost::asio::io_context io_;
  std::optional<Endpoint> endpoint_;
  std::optional<Connection> connection_;
};

TEST_F(ConnectionTest, ReadsBodiesOfALengthAndInChunks) {
  const std::string large(10'000'000, 'x');
  for (const auto& [head_and_body, expected] : std::vector<std::pair<std::string, std::string>>{
           {"Content-Length: 5\r\n\r\nhello", "hello"},
           {"Content-Length: 0\r\n\r\n", ""},
           {"Transfer-Encoding: chunked\r\n\r\n3;x=y\r\nhel\r\n2\r\nlo\r\n0\r\nTrailer: 1\r\n\r\n",
            "hello"},
           {"Content-Length: 10000000\r\n\r\n" + large, large}}) {
    const std::string response = "HTTP/1.1 200 OK\r\n" + head_and_body;
    const RawServer server(answering(response));
    connect_to(server);
    const Response read = ask();
    EXPECT_EQ(read.status, 200);
    EXPECT_EQ(read.body, expected);
    EXPECT_EQ(read.byte_count, response.size());
    EXPECT_TRUE(connection_->is_open());
    EXPECT_FALSE(connection_->has_input());
    connection_->close();
  }
}

TEST_F(ConnectionTest, ReadsWhatARefusalSays) {
  const RawServer server(
      answering("HTTP/1.1 503 Service Unavailable\r\nRetry-After: 2\r\nConnection: close\r\n"
                "CONTENT-LENGTH:0\r\n\r\n"));
  connect_to(server);
  const Response read = ask();
  EXPECT_EQ(read.status, 503);
  EXPECT_EQ(read.retry_after_s, 2u);
  EXPECT_FALSE(connection_->is_open()) << "the server closes it";
}

TEST_F(ConnectionTest, WhatFollowsAResponseClosesTheConnection) {
  const RawServer server(answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP"));
  connect_to(server);
  const Response read = ask();
  EXPECT_EQ(read.status, 200);
  EXPECT_FALSE(connection_->is_open());
}

TEST_F(ConnectionTest, WithoutALengthABodyEndsWithTheConnection) {
  const RawServer server([](int connection) {
    if (!read_head(connection).empty()) send_all(connection, "HTTP/1.0 200 OK\r\n\r\nhello");
  });
  connect_to(server);
  const Response read = ask();
  EXPECT_EQ(read.body, "hello");
  EXPECT_FALSE(connection_->is_open());
}

TEST_F(ConnectionTest, WhatIsCutOrNoHttpIsAnError) {
  for (const std::string response :
       {"", "HTTP/1.1 200 OK\r\nContent-Le", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell",
        "SSH-2.0\r\n\r\n", "HTTP/1.1 abc\r\n\r\n", "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"}) {
    const RawServer server([response](int connection) {
      if (!read_head(connection).empty()) send_all(connection, response);
    });
    connect_to(server);
    EXPECT_THROW(ask(), boost::system::system_error) << response;
    connection_->close();
  }
}

TEST_F(ConnectionTest, ThatTheServerClosesItIsSeen) {
  const RawServer server([](int) {});
  connect_to(server);
  EXPECT_THROW(ask(), boost::system::system_error);
  EXPECT_TRUE(connection_->has_input());
}

}  // namespace
}  // namespace blindfuse::load
