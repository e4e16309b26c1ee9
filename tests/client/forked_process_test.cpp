// What a forked process does with a client of the process that it is a copy of. Both have the same
// secrets in memory: two queries under one secret would tell the server the rows of both.
#include <blindfuse/errors.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <tuple>

#include "client/ring_query.h"
#include "client/shared_session.h"
#include "tests/client/client_testing.h"
#include "tests/client/copied_process.h"
#include "tests/client/fake_server.h"
#include "tests/client/look_ups.h"
#include "tests/client/seeded_random.h"

namespace blindfuse {
namespace {

using reference_pir::operator+;

// One thread: a copy of a process has no others. An index database whose values mean nothing.
class ForkedProcessTest : public FakeServerTest,
                          public testing::WithParamInterface<std::tuple<Copying, Mode>> {
 protected:
  ForkedProcessTest()
      : FakeServerTest(mode() == Mode::kPacked
                           ? ServedDatabase::with_noise(3, 601, 0, "ring-2048", 18)
                           : ServedDatabase::with_noise(3, 16, 0)) {}

  void SetUp() override {
    if (const std::string reason = why_not(how()); !reason.empty()) GTEST_SKIP() << reason;
  }

  static Copying how() { return std::get<0>(GetParam()); }
  static Mode mode() { return std::get<1>(GetParam()); }
  const Layout& layout() const { return server_.database.layout(); }

  // Of the process that calls it.
  Bytes sent_queries() const {
    Bytes all;
    for (const SeenRequest& request : server_.seen("/queries")) {
      all.insert(all.end(), request.body.begin(), request.body.end());
    }
    return all;
  }

  // The same, in words.
  Bytes count_of_queries() const {
    const std::string count = std::to_string(sent_queries().size() / layout().query_bytes());
    return Bytes(count.begin(), count.end()) + Bytes{' ', 'q', 'u', 'e', 'r', 'i', 'e', 's', '\n'};
  }

  std::unique_ptr<SharedSession> shared_session(const ClientOptions& options) {
    const TransportMaker make = [this](const auto&) {
      return std::make_unique<FakeTransport>(server_);
    };
    return std::make_unique<SharedSession>(make, "http://test", options, std::stop_token());
  }

  Manifest manifest() const { return parse_manifest(server_.database.manifest_text()).manifest; }
  // Whether it refuses, and writes nothing.
  bool is_useless(PreparedQuery query) const {
    Bytes bytes(layout().query_bytes());
    try {
      (void)std::move(query).encrypt({}, layout().query_bits, bytes);
    } catch (const std::logic_error&) {
      return bytes == Bytes(layout().query_bytes());
    }
    return false;
  }
};

INSTANTIATE_TEST_SUITE_P(, ForkedProcessTest,
                         testing::Combine(testing::ValuesIn(kEveryCopying),
                                          testing::Values(Mode::kHint, Mode::kPacked)),
                         [](const auto& of) {
                           return name_of(std::get<0>(of.param)) +
                                  (std::get<1>(of.param) == Mode::kPacked ? "Packed" : "Hint");
                         });

// Whether two parts of queries are under secrets that have nothing to do with each other: 1 byte in
// 256 is the same by chance, and 1 in 50 of packing keys, whose words are below 2^32.
bool differ_everywhere(std::span<const uint8_t> a, std::span<const uint8_t> b) {
  size_t same = 0;
  for (size_t i = 0; i < a.size(); ++i) same += a[i] == b[i];
  return same * 10 < a.size();
}

// A process makes queries ahead and is copied; the copy makes more and is copied; then all three
// ask, each for something else.
TEST_P(ForkedProcessTest, SendsNoPreparedQueryAgain) {
  const auto bodies = in_copy(how(), [this] {
    Session session = this->session();
    session.prepare(2);
    const auto childs = in_copy(how(), [&] {
      session.prepare(2);
      const auto grandchilds = in_copy(how(), [&] {
        value_of(session, "2");
        return sent_queries();
      });
      value_of(session, "1");
      return grandchilds.value() + sent_queries();
    });
    value_of(session, "0");
    return childs.value() + sent_queries();
  });
  ASSERT_TRUE(bodies);
  const size_t query_bytes = layout().query_bytes();
  ASSERT_EQ(bodies->size(), 3 * query_bytes);
  const auto query = [&](size_t i) {
    return std::span(*bodies).subspan(i * query_bytes, query_bytes);
  };
  const size_t words_bytes = layout().query_words_bytes();
  for (size_t i = 0; i < 3; ++i) {
    for (size_t j = 0; j < i; ++j) {
      EXPECT_TRUE(differ_everywhere(query(i).first(words_bytes), query(j).first(words_bytes)))
          << "words of the queries " << i << " and " << j;
      if (mode() == Mode::kHint) continue;
      EXPECT_TRUE(differ_everywhere(query(i).subspan(words_bytes), query(j).subspan(words_bytes)))
          << "packing keys of the queries " << i << " and " << j;
    }
  }
}

TEST_P(ForkedProcessTest, CannotUseAPreparedQuery) {
  const auto outcome = in_copy(how(), [this] {
    auto queries = prepare_queries_for(manifest(), 2, 1, fill_from_system);
    const auto childs = in_copy(how(), [&] {
      const auto grandchilds =
          in_copy(how(), [&] { return Bytes{is_useless(std::move(queries[0]))}; });
      return grandchilds.value() + Bytes{is_useless(std::move(queries[0]))};
    });
    return childs.value() + Bytes{is_useless(std::move(queries[0]))};
  });
  EXPECT_EQ(outcome, (Bytes{true, true, false}));
}

// The copy goes on where it was made: with secrets that are drawn already.
TEST_P(ForkedProcessTest, CannotUseAQueryThatWasBeingMade) {
  const auto outcome = in_copy(how(), [this] {
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("no pipe");
    std::optional<pid_t> child;
    const auto copy_once = [&](const ClientProgress&) {
      if (!child) child = copy_process(how());
      return true;
    };
    auto queries = prepare_queries_for(manifest(), 1, 1, fill_from_system, copy_once);
    const uint8_t useless = is_useless(std::move(queries[0]));
    if (child == 0) _exit(write(ends[1], &useless, 1) == 1 ? 0 : 1);
    uint8_t childs = 0;
    if (read(ends[0], &childs, 1) != 1) throw std::runtime_error("the child said nothing");
    waitpid(*child, nullptr, 0);
    return Bytes{childs, useless};
  });
  EXPECT_EQ(outcome, (Bytes{true, false}));
}

// The errors that calls end with, one a line.
Bytes errors_of(SharedSession& shared) {
  const std::string key = "1";
  std::string errors;
  const auto note_error = [&](const auto& call) {
    try {
      call();
      errors += "none\n";
    } catch (const InputError& error) {
      errors += std::string(error.what()) + "\n";
    }
  };
  note_error([&] { shared.look_up(copies_of({&key, 1}), KeyForm::kAny, {}); });
  note_error([&] { shared.run({}, [](Session& session) { session.prepare(1); }); });
  return Bytes(errors.begin(), errors.end());
}

// Of both calls.
std::string refusals() {
  const std::string one =
      "a client made before fork() is not for the child process: connect again there\n";
  return one + one;
}

TEST_P(ForkedProcessTest, IsRefusedByAClientMadeBefore) {
  const auto outcome = in_copy(how(), [this] {
    const auto shared = shared_session(options());
    shared->run({}, [](Session& session) { session.prepare(2); });
    const auto calls = [&] {
      const Bytes errors = errors_of(*shared);
      return errors + count_of_queries();
    };
    const auto childs = in_copy(how(), [&] {
      const auto grandchilds = in_copy(how(), calls);
      return grandchilds.value() + calls();
    });
    return childs.value() + calls();
  });
  ASSERT_TRUE(outcome);
  EXPECT_EQ(std::string(outcome->begin(), outcome->end()),
            refusals() + "0 queries\n" + refusals() + "0 queries\n" + "none\nnone\n1 queries\n");
}

// In a call, of which the copy has its own.
TEST_P(ForkedProcessTest, IsRefusedByAClientThatIsAsking) {
  const auto outcome = in_copy(how(), [this] {
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("no pipe");
    std::optional<pid_t> child;
    ClientOptions options = this->options();
    options.progress = [&](const ClientProgress& progress) {
      if (progress.stage == ClientStage::kPreparingQueries && !child) child = copy_process(how());
      return true;
    };
    const auto shared = shared_session(options);
    Bytes mine = errors_of(*shared);
    mine = mine + count_of_queries();
    if (child == 0) _exit(write(ends[1], mine.data(), mine.size()) > 0 ? 0 : 1);
    close(ends[1]);
    Bytes childs(1000);
    childs.resize(static_cast<size_t>(std::max<ssize_t>(read(ends[0], childs.data(), 1000), 0)));
    waitpid(*child, nullptr, 0);
    return childs + mine;
  });
  ASSERT_TRUE(outcome);
  EXPECT_EQ(std::string(outcome->begin(), outcome->end()),
            refusals() + "0 queries\n" + "none\nnone\n1 queries\n");
}

}  // namespace
}  // namespace blindfuse
