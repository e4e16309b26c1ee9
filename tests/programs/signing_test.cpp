// Signed epochs from the outside: keygen, build --sign, inspect, serve, and the client with a key.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>

#include "tests/programs/program_testing.h"
#include "tests/server/loopback_client.h"

namespace blindfuse::program_testing {
namespace {

using server_testing::get_request;
using server_testing::LoopbackClient;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;

class SigningPrograms : public ::testing::Test {
 protected:
  const TemporaryFolder folder_;
  const std::string database_ = folder_ / "db";
  const std::string key_file_ = folder_ / "words.key";
  std::string public_key_ = keygen(key_file_);

  std::string keygen(const std::string& file) const {
    const ProgramResult result = run(folder_, {kBlindfuse, "keygen", file});
    EXPECT_EQ(result.status, 0) << result.err;
    return result.out.substr(0, result.out.find('\n'));
  }

  ProgramResult build(const std::string& pairs, const Words& more) const {
    return run(folder_, Words{kBlindfuse, "build", write_file(folder_ / "a.tsv", pairs), "--output",
                              database_} +
                            more);
  }
  ProgramResult build_signed(const std::string& pairs = "tea\thot\n") const {
    return build(pairs, {"--sign", key_file_});
  }

  ProgramResult inspect(const Words& more = {}) const {
    return run(folder_, Words{kBlindfuse, "inspect", database_} + more);
  }

  std::filesystem::path manifest_file() const { return database_ + "/manifest.json"; }

  // Says another time than the one that was signed.
  void spoil_signature() const {
    auto members = nlohmann::json::parse(read_whole(manifest_file()));
    members["time"] = members["time"].get<uint64_t>() + 1;
    write_file(manifest_file(), members.dump());
  }

  // The manifest that is in the directory.
  void wait_until_served(RunningServer& server) const {
    server.program().send(SIGHUP);
    const std::string wanted = read_whole(manifest_file());
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (LoopbackClient(server.url()).ask(get_request("/v1/database")).body != wanted) {
      ASSERT_LT(std::chrono::steady_clock::now(), give_up) << server.program().err();
      std::this_thread::yield();
    }
  }

  ProgramResult get(const std::string& url, const Words& more) const {
    return run(folder_,
               Words{kBlindfuseClient, "get", url, "tea", "--cache", folder_ / "cache"} + more);
  }
};

TEST_F(SigningPrograms, KeygenMakesAKeyThatOpenSslReads) {
  EXPECT_THAT(public_key_, MatchesRegex("[0-9a-f]+"));
  EXPECT_EQ(public_key_.size(), 64u);
  struct stat status {};
  ASSERT_EQ(stat(key_file_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
  const ProgramResult seen =
      run(folder_, {"openssl", "pkey", "-in", key_file_, "-noout", "-text_pub"});
  EXPECT_EQ(seen.status, 0) << seen.err;
  std::string digits;
  for (const char c : seen.out.substr(seen.out.find("pub:") + 4)) {
    if (c != ':' && c != ' ' && c != '\n') digits += c;
  }
  EXPECT_EQ(digits, public_key_);
}

TEST_F(SigningPrograms, BuildSignsAndInspectShowsIt) {
  const ProgramResult built = build_signed();
  ASSERT_EQ(built.status, 0) << built.err;
  EXPECT_THAT(built.out, HasSubstr("signed by " + public_key_ + " as number "));
  const ProgramResult shown = inspect();
  EXPECT_EQ(shown.status, 0) << shown.err;
  EXPECT_THAT(shown.out,
              AllOf(HasSubstr("signer         " + public_key_), Not(HasSubstr("WRONG"))));
  const auto members = nlohmann::json::parse(read_whole(manifest_file()));
  const auto object = nlohmann::json::parse(inspect({"--json"}).out).at("signature");
  EXPECT_EQ(object.at("signer"), public_key_);
  EXPECT_EQ(object.at("sequence"), members.at("sequence"));
  EXPECT_EQ(object.at("time"), members.at("time"));
  EXPECT_THAT(object.at("time_utc").get<std::string>(), MatchesRegex("20[0-9-]+T[0-9:]+Z"));
  EXPECT_EQ(object.at("right"), true);
  const auto report =
      nlohmann::json::parse(build("tea\thot\n", {"--sign", key_file_, "--json"}).out);
  EXPECT_EQ(report.at("signature_changed"), false);
  EXPECT_EQ(report.at("signature").at("signer"), public_key_);
}

TEST_F(SigningPrograms, BuildSaysWhatItPublishes) {
  ASSERT_EQ(build("tea\thot\n", {}).status, 0);
  EXPECT_THAT(inspect().out, HasSubstr("signed         no\n"));
  EXPECT_TRUE(nlohmann::json::parse(inspect({"--json"}).out).at("signature").is_null());
  EXPECT_THAT(build_signed().out, HasSubstr("is published with a new signature"));
  EXPECT_THAT(build_signed().out, HasSubstr("; the epoch is unchanged\n"));
  const std::string before = read_whole(manifest_file());
  const ProgramResult refused = build("tea\thot\n", {});
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.err,
              AllOf(HasSubstr("is signed by " + public_key_), HasSubstr("--unsigned")));
  EXPECT_EQ(read_whole(manifest_file()), before);
  EXPECT_THAT(build("tea\thot\n", {"--unsigned"}).out,
              HasSubstr("is published without its signature"));
  EXPECT_EQ(build("tea\thot\n", {"--unsigned", "--sign", key_file_}).status, 2);
}

TEST_F(SigningPrograms, AFileThatIsNoKeyIsRefusedBeforeAnythingIsBuilt) {
  const ProgramResult result = build("tea\thot\n", {"--sign", write_file(folder_ / "x", "no key")});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, HasSubstr("not a private key"));
  EXPECT_FALSE(std::filesystem::exists(database_));
}

TEST_F(SigningPrograms, AWrongSignatureIsShownAndNotServed) {
  ASSERT_EQ(build_signed().status, 0);
  spoil_signature();
  const ProgramResult shown = inspect();
  EXPECT_EQ(shown.status, 1);
  EXPECT_THAT(shown.out, HasSubstr("THE SIGNATURE IS WRONG"));
  EXPECT_THAT(shown.err, HasSubstr("signature is wrong"));
  const ProgramResult as_json = inspect({"--json"});
  EXPECT_EQ(as_json.status, 1);
  EXPECT_EQ(nlohmann::json::parse(as_json.out).at("signature").at("right"), false);
  RunningServer server(folder_, database_);
  EXPECT_EQ(server.url(), "");
  EXPECT_EQ(server.program().wait(), 1);
  EXPECT_THAT(server.program().err(), HasSubstr("signature is wrong"));
}

TEST_F(SigningPrograms, ClientsTellRollbackAndChangeOfKey) {
  ASSERT_EQ(build_signed("tea\told\n").status, 0);
  const std::filesystem::path old = folder_ / "old";
  std::filesystem::copy(database_, old, std::filesystem::copy_options::recursive);
  ASSERT_EQ(build_signed("tea\tnew\n").status, 0);
  RunningServer server(folder_, database_);
  ASSERT_NE(server.url(), "") << server.program().err();
  EXPECT_EQ(get(server.url(), {"--server-key", public_key_}).out, "new\n");

  // As somebody does who restores a backup, or wants clients to have what is old.
  const std::string manifest = read_whole(old / "manifest.json");
  std::filesystem::remove(old / "manifest.json");
  std::filesystem::copy(
      old, database_,
      std::filesystem::copy_options::recursive | std::filesystem::copy_options::overwrite_existing);
  write_file(folder_ / "manifest", manifest);
  std::filesystem::rename(folder_ / "manifest", manifest_file());
  wait_until_served(server);
  const ProgramResult refused = get(server.url(), {"--server-key", public_key_});
  EXPECT_EQ(refused.status, 1);
  EXPECT_EQ(refused.out, "");
  EXPECT_THAT(refused.err, HasSubstr("was rolled back"));
  const ProgramResult allowed =
      get(server.url(), {"--server-key", public_key_, "--allow-rollback"});
  EXPECT_EQ(allowed.out, "old\n") << allowed.err;
  // Without a key it is said, and goes on.
  const ProgramResult told = get(server.url(), {});
  EXPECT_EQ(told.status, 0);
  EXPECT_EQ(told.out, "old\n");
  EXPECT_THAT(told.err, AllOf(HasSubstr("warning: "), HasSubstr("was rolled back")));

  // The same epoch: only its signature changes in the running server.
  const std::string other_key = keygen(folder_ / "other.key");
  ASSERT_EQ(build("tea\told\n", {"--sign", folder_ / "other.key"}).status, 0);
  wait_until_served(server);
  const ProgramResult changed = get(server.url(), {});
  EXPECT_EQ(changed.out, "old\n");
  EXPECT_THAT(changed.err, AllOf(HasSubstr("was signed by " + public_key_),
                                 HasSubstr("now is by " + other_key)));
  EXPECT_EQ(get(server.url(), {"--server-key", other_key}).status, 0);
  EXPECT_THAT(get(server.url(), {}).err, IsEmpty()) << "the new key was accepted";
}

}  // namespace
}  // namespace blindfuse::program_testing
