#include "client/cache_folder.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace blindfuse {
namespace {

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
