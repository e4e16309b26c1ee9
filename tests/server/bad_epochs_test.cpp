// Epochs of a real directory that cannot be served, which the one before outlives.
#include <sys/resource.h>

#include <fstream>
#include <new>

#include "src/base/errors.h"
#include "tests/server/reloading_server.h"

namespace blindfuse::server_testing {
namespace {

// No file can be opened, by any thread, as long as this lives.
class NoDescriptors {
 public:
  NoDescriptors() {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    const rlimit none{.rlim_cur = 0, .rlim_max = before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  }
  ~NoDescriptors() { EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before_), 0); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_{};
};

TEST_F(Reloader, RefusesAWrongSignature) {
  const SigningKey key = SigningKey::make(fill_from_system);
  build(1, &key);
  serve(kNever);
  const std::string before = ask(get_request("/v1/database")).body;
  const ParsedManifest parsed = parse_manifest(before);
  ManifestSignature wrong = *parsed.signature;
  wrong.sequence += 1;
  write_manifest(serialize_manifest(parsed.manifest, wrong));
  request_and_wait();
  expect_loads(0, 1);
  EXPECT_EQ(ask(get_request("/v1/database")).body, before);
  expect_version(1);
}

TEST_F(Reloader, RefusesABadEpochAndGoesOn) {
  using std::filesystem::remove;
  const std::vector<std::pair<const char*, std::function<void()>>> troubles = {
      {"a truncated matrix", [&] { cut_matrix(); }},
      {"an empty matrix", [&] { std::filesystem::resize_file(matrix_file(), 0); }},
      {"a flipped bit in a hint",
       [&] {
         std::string bytes = read_whole(hint_file());
         bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 4);
         std::ofstream(hint_file(), std::ios::binary) << bytes;
       }},
      {"a missing table", [&] { remove(table_file()); }},
      {"a missing hint", [&] { remove(hint_file()); }},
      {"a folder instead of a matrix",
       [&] {
         const auto file = matrix_file();
         remove(file);
         std::filesystem::create_directory(file);
       }},
      {"a manifest of nonsense", [&] { write_manifest("nonsense"); }},
      {"an empty manifest", [&] { write_manifest(""); }},
      {"a manifest cut off",
       [&] {
         const std::string text = read_whole(manifest_file());
         write_manifest(text.substr(0, text.size() / 2));
       }},
      {"a manifest of another id",
       [&] {
         std::string text = read_whole(manifest_file());
         const size_t at = text.find(nlohmann::json::parse(text).at("epoch").get<std::string>());
         text[at] = text[at] == '0' ? '1' : '0';
         write_manifest(text);
       }},
      {"no manifest", [&] { remove(manifest_file()); }},
  };
  int version = 1;
  EpochId served = build(version);
  serve(kNever);
  for (double tried = 1; const auto& [name, trouble] : troubles) {
    SCOPED_TRACE(name);
    build(version + 1);
    trouble();
    request_and_wait();
    expect_loads(tried - 1, tried);
    EXPECT_EQ(current(), served);
    EXPECT_LE(epochs_->all().size(), 3u) << "however many there have been";
    expect_version(version);
    // The operator starts from nothing, and all is well.
    std::filesystem::remove_all(root());
    version += 2;
    served = build(version);
    request_and_wait();
    EXPECT_EQ(current(), served);
    expect_loads(tried, tried);
    expect_version(version);
    ++tried;
  }
}

// Once, not at every look, and not after a while either.
TEST_F(Reloader, TriesABadEpochOnce) {
  const EpochId first = build(1);
  serve_by_hand();
  build(2);
  cut_matrix();
  for (const double failures : {1, 2}) {
    clock_.advance(std::chrono::seconds(1));
    ASSERT_EQ(loads("failure"), failures);
    for (const int pause : {1, 30, 300, 90'000}) {
      clock_.advance(std::chrono::seconds(pause));
      EXPECT_EQ(loads("failure"), failures) << "after " << pause << " s";
    }
    EXPECT_EQ(current(), first);
    std::ofstream(folder_ / "new") << "nonsense";
    std::filesystem::rename(folder_ / "new", manifest_file());
  }
  std::filesystem::remove_all(root());
  const EpochId third = build(3);
  clock_.advance(std::chrono::seconds(1));
  EXPECT_EQ(current(), third);
  expect_version(3);
}

// Nothing can go on where it was: what is served is on the same device.
TEST_F(Reloader, SaysThatTheDeviceIsLost) {
  build(1);
  before_load_ = [] { throw DeviceLostError("the test's device is gone"); };
  serve(kNever);
  build(2);
  reloader_->request();
  device_lost_.get_future().wait();
  EXPECT_TRUE(reloader_->stop(std::chrono::minutes(1)));
  EXPECT_EQ(loads("failure"), 1);
  EXPECT_EQ(load_count_, 1) << "it is not tried again";
}

// What the machine lacked may be there later, and no one has to say so.
TEST_F(Reloader, TriesAnEpochAgainThatTheMachineHadNoRoomFor) {
  const std::vector<std::pair<const char*, std::function<void()>>> troubles = {
      {"memory", [] { throw std::bad_alloc(); }},
      {"memory of the engine", [] { throw ResourceError("no room"); }},
      {"descriptors",
       [&] {
         const NoDescriptors none;
         builder_testing::load(root());
       }},
  };
  EpochId served = build(1);
  serve_by_hand();
  for (int n = 0; const auto& [name, trouble] : troubles) {
    SCOPED_TRACE(name);
    before_load_ = trouble;
    const EpochId next = build(n + 2);
    clock_.advance(std::chrono::seconds(1));
    expect_loads(n, 2 * n + 1);
    clock_.advance(std::chrono::seconds(29));
    expect_loads(n, 2 * n + 1);  // too early
    clock_.advance(std::chrono::seconds(1));
    expect_loads(n, 2 * n + 2);
    EXPECT_EQ(current(), served);
    before_load_ = nullptr;
    clock_.advance(std::chrono::seconds(30));
    EXPECT_EQ(current(), next);
    ++n;
    expect_loads(n, 2 * n);
    served = next;
  }
  expect_version(4);
}

}  // namespace
}  // namespace blindfuse::server_testing
