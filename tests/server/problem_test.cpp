#include "host/server/routes/problem.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

namespace blindfuse {
namespace {

TEST(Problem, HasATypeOfItsOwnForEveryKind) {
  std::set<std::string> types;
  const int last = static_cast<int>(ProblemKind::kUnsupportedVersion);
  for (int kind = 0; kind <= last; ++kind) {
    const Problem problem{.kind = static_cast<ProblemKind>(kind), .detail = ""};
    const auto document = nlohmann::json::parse(serialize_problem(problem));
    EXPECT_TRUE(types.insert(document.at("type")).second);
    EXPECT_FALSE(document.contains("epoch"));
    EXPECT_EQ(problem_of(http::Error(problem.status(), "x")).status(), problem.status());
  }
  EXPECT_EQ(problem_of(http::Error(400, "x")).kind, ProblemKind::kMalformedRequest);
  EXPECT_EQ(problem_of(http::Error(404, "x")).kind, ProblemKind::kUnknownRoute);
  EXPECT_EQ(problem_of(http::Error(418, "x")).kind, ProblemKind::kInternalError);
}

}  // namespace
}  // namespace blindfuse
