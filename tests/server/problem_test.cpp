#include "host/server/routes/problem.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

namespace blindfuse {
namespace {

TEST(Problem, IsAProblemDocument) {
  const Problem problem{
      .kind = ProblemKind::kRetiredEpoch, .detail = "gone \"for good\"", .epoch = EpochId(64, 'a')};
  EXPECT_EQ(problem.status(), 410);
  const auto document = nlohmann::json::parse(serialize_problem(problem));
  EXPECT_EQ(document, (nlohmann::json{{"type", "urn:blindfuse:problem:retired-epoch"},
                                      {"title", "Retired epoch"},
                                      {"status", 410},
                                      {"detail", "gone \"for good\""},
                                      {"epoch", EpochId(64, 'a')}}));
}

TEST(Problem, LeavesOutTheEpochWhereThereIsNone) {
  const Refusal refusal(ProblemKind::kBusy, "later");
  EXPECT_STREQ(refusal.what(), "later");
  const auto document = nlohmann::json::parse(serialize_problem(refusal.problem()));
  EXPECT_FALSE(document.contains("epoch"));
  EXPECT_EQ(document.at("status"), 503);
}

TEST(Problem, HasATypeOfItsOwnForEveryKind) {
  std::set<std::string> types;
  const int last = static_cast<int>(ProblemKind::kUnsupportedVersion);
  for (int kind = 0; kind <= last; ++kind) {
    const Problem problem{.kind = static_cast<ProblemKind>(kind), .detail = ""};
    const auto document = nlohmann::json::parse(serialize_problem(problem));
    EXPECT_TRUE(types.insert(document.at("type")).second);
    EXPECT_EQ(problem_of(http::Error(problem.status(), "x")).status(), problem.status());
  }
  EXPECT_EQ(problem_of(http::Error(400, "x")).kind, ProblemKind::kMalformedRequest);
  EXPECT_EQ(problem_of(http::Error(404, "x")).kind, ProblemKind::kUnknownRoute);
  EXPECT_EQ(problem_of(http::Error(418, "x")).kind, ProblemKind::kInternalError);
}

}  // namespace
}  // namespace blindfuse
