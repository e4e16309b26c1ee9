// Sessions of a fake server, and their look-ups by keys that are strings.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/look_up.h"
#include "client/secret.h"
#include "client/session.h"
#include "tests/client/client_testing.h"
#include "tests/client/fake_server.h"

namespace blindfuse {

inline std::vector<Answer> answers_of(Session& session, std::span<const std::string> keys) {
  const std::vector<std::string_view> views(keys.begin(), keys.end());
  return session.look_up(views);
}
inline std::vector<std::optional<std::string>> values_of(Session& session,
                                                         std::span<const std::string> keys) {
  return values_of(answers_of(session, keys));
}
inline std::optional<std::string> value_of(Session& session, std::string_view key) {
  return values_of(session.look_up({&key, 1})).front();
}
inline std::optional<std::string> value_of(Session&& session, std::string_view key) {
  return value_of(session, key);
}

inline KeyCopies copies_of(std::span<const std::string> keys) {
  KeyCopies copies(keys.size());
  for (const std::string& key : keys) copies.add(key);
  return copies;
}

// The server's database is that of tests/vectors, or another one.
class FakeServerTest : public testing::Test {
 protected:
  explicit FakeServerTest(
      ServedDatabase served = ServedDatabase::from_vectors("database_keyword.json"))
      : server_(std::move(served)) {}

  ClientOptions options() const {
    ClientOptions options;
    options.cache_folder = scratch_.path();
    options.thread_count = 1;
    return options;
  }
  Session session() { return session(options()); }
  Session session(ClientOptions options, RandomSource random = fill_from_system,
                  HintFiles files = HintFiles::kOnDisk) {
    return session(std::make_unique<FakeTransport>(server_), std::move(options), std::move(random),
                   files);
  }
  static Session session(std::unique_ptr<Transport> transport, ClientOptions options,
                         RandomSource random = fill_from_system,
                         HintFiles files = HintFiles::kOnDisk) {
    return Session(std::move(transport), "http://test", std::move(options), std::move(random),
                   files);
  }
  std::filesystem::path folder() const { return database_folder(scratch_.path(), "http://test"); }

  // Keys and values as the vectors have them.
  std::string key(size_t i) const { return text(i, "key"); }
  std::string value(size_t i) const { return text(i, "value"); }
  std::vector<std::string> keys(size_t count) const {
    std::vector<std::string> result;
    for (size_t i = 0; i < count; ++i) result.push_back(key(i));
    return result;
  }

  // No two requests carried the same query.
  void expect_all_queries_differ() const {
    const uint64_t query_bytes = server_.database.layout().query_bytes();
    std::set<Bytes> queries;
    size_t count = 0;
    for (const SeenRequest& request : server_.seen("/queries")) {
      ASSERT_EQ(request.body.size() % query_bytes, 0u);
      for (size_t at = 0; at < request.body.size(); at += query_bytes, ++count) {
        queries.insert(reference_pir::slice(request.body, at, query_bytes));
      }
    }
    EXPECT_EQ(queries.size(), count);
  }

  ScratchFolder scratch_;
  FakeServer server_;
  const nlohmann::json entries_ = read_vectors("database_keyword.json")["entries"];

 private:
  std::string text(size_t i, const char* member) const {
    return *decode_hex(entries_[i][member].get<std::string>());
  }
};

}  // namespace blindfuse
