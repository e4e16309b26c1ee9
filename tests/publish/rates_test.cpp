#include "host/publish/rates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "host/publish/rates_cache.h"
#include "src/program/program.h"
#include "src/system/file.h"
#include "tests/publish/builder_testing.h"
#include "tests/publish/known_rates.h"
#include "tests/support.h"

namespace blindfuse {
namespace {

using builder_testing::TemporaryFolder;
using nlohmann::json;
using support::input_error_of;
using support::known_rates;
using ::testing::AllOf;
using ::testing::HasSubstr;

Rates rates_of_elsewhere() {
  return {{"A 9000", "1.2.3", "scan portable, packing portable"}, known_rates()};
}

json rates_object() { return json::parse(serialize_rates(rates_of_elsewhere())); }

std::string rates_refusal(const std::string& text) {
  return input_error_of([&] { parse_rates(text, "other.json"); });
}

std::string rates_refusal_with(const char* member, const json& value) {
  json object = rates_object();
  object[member] = value;
  return rates_refusal(object.dump());
}

// As it stands in files of users, whose other programs read it.
TEST(Rates, AreAnObjectOfJson) {
  const json object = rates_object();
  EXPECT_EQ(object.size(), 13u);
  EXPECT_EQ(object.at("format"), "blindfuse-rates/1");
  EXPECT_EQ(object.at("processor"), "A 9000");
  EXPECT_EQ(object.at("program"), "1.2.3");
  EXPECT_EQ(object.at("kernels"), "scan portable, packing portable");
  EXPECT_EQ(object.at("scan_alone_bytes_per_second"), 10e9);
  EXPECT_EQ(object.at("scan_batch_multiply_adds_per_second"), 80e9);
  EXPECT_EQ(object.at("pack_alone_bytes_per_second"), 8e9);
  EXPECT_EQ(object.at("pack_batch_multiply_adds_per_second"), 4e9);
  EXPECT_EQ(object.at("memory_bytes_per_second"), 16e9);
  EXPECT_EQ(object.at("second_switch_seconds"), 20e-6);
  EXPECT_EQ(object.at("second_column_seconds"), 3e-6);
  EXPECT_EQ(object.at("second_traces_seconds"), 5e-3);
  EXPECT_EQ(object.at("second_short_trace_seconds"), 1e-6);
}

TEST(Rates, KeepEveryBit) {
  Rates rates = rates_of_elsewhere();
  rates.core.second_switch_seconds = 1.0 / 3;
  rates.core.memory_bytes_per_second = 1e10 / 7;
  EXPECT_EQ(parse_rates(serialize_rates(rates), "a"), rates);
}

TEST(Rates, MayBeWholeNumbers) {
  json object = rates_object();
  object["second_traces_seconds"] = 2;
  EXPECT_EQ(parse_rates(object.dump(), "a").core.second_traces_seconds, 2.0);
}

TEST(Rates, HaveEveryMember) {
  const json whole = rates_object();
  for (const auto& member : whole.items()) {
    json object = whole;
    object.erase(member.key());
    EXPECT_THAT(rates_refusal(object.dump()),
                AllOf(HasSubstr("other.json has no \"" + member.key() + "\""),
                      HasSubstr("`blindfuse plan --calibrate`")));
  }
}

TEST(Rates, HaveNoOtherMember) {
  EXPECT_THAT(rates_refusal_with("disk_bytes_per_second", 1),
              AllOf(HasSubstr("other.json has the member \"disk_bytes_per_second\", which"),
                    HasSubstr("`blindfuse plan --calibrate`")));
  EXPECT_THAT(rates_refusal_with("\n\xc3\xa4", 1), HasSubstr("the member \"\\n\\u00e4\", which"));
}

TEST(Rates, ArePositiveNumbers) {
  for (const json& value : {json(0), json(-1), json(-0.5), json("1"), json(nullptr), json(true),
                            json::array(), json::object()}) {
    EXPECT_THAT(rates_refusal_with("second_switch_seconds", value),
                HasSubstr("has a \"second_switch_seconds\" that is not a positive number"))
        << value;
  }
  // Too large for a double.
  std::string text = serialize_rates(rates_of_elsewhere());
  const std::string number = "10000000000.0";
  ASSERT_NE(text.find(number), std::string::npos) << text;
  EXPECT_NE(rates_refusal(text.replace(text.find(number), number.size(), "1e999")), "");
}

// Costs of others would be infinite, which is not a number of JSON, or have hundreds of digits.
TEST(Rates, AreThoseOfAMachine) {
  for (const char* member : {"second_switch_seconds", "memory_bytes_per_second"}) {
    for (const double value : {1e-300, 1e-16, 1e21, 1e300}) {
      EXPECT_THAT(rates_refusal_with(member, value),
                  AllOf(HasSubstr(std::string("has a \"") + member + "\" that no machine has"),
                        HasSubstr("`blindfuse plan --calibrate`")))
          << value;
    }
    EXPECT_EQ(rates_refusal_with(member, 1e-12), "");
    EXPECT_EQ(rates_refusal_with(member, 1e19), "");
  }
}

TEST(Rates, AreOfThisFormat) {
  EXPECT_THAT(rates_refusal_with("format", "blindfuse-rates/2"), HasSubstr("another \"format\""));
  EXPECT_THAT(rates_refusal_with("processor", 9000),
              HasSubstr("\"processor\" that is not a string"));
  for (const char* text : {"", "{", "[]", "1", "{}x", "\xff"}) {
    EXPECT_THAT(rates_refusal(text), HasSubstr("other.json is not an object of JSON")) << text;
  }
  EXPECT_THAT(rates_refusal("{}"), HasSubstr("has no \"format\""));
  EXPECT_THAT(rates_refusal(std::string(kRatesBytesMax + 1, ' ')),
              HasSubstr("more than 16384 bytes"));
}

TEST(Rates, KnowThisMachine) {
  const RatesOrigin origin = rates_origin();
  EXPECT_NE(origin.processor, "");
  EXPECT_EQ(origin.program, program_version());
  EXPECT_EQ(origin.kernels, rate_kernels());
}

// A cache whose measurements give other rates each time, and are counted.
class RatesCacheTest : public ::testing::Test {
 protected:
  Rates get(bool measure_again = false) {
    return get_of(rates_of_elsewhere().origin, measure_again);
  }
  Rates get_of(const RatesOrigin& origin, bool measure_again = false) {
    return RatesCache(file_, origin,
                      [&] {
                        CoreRates rates = known_rates();
                        rates.memory_bytes_per_second += ++measured_;
                        return rates;
                      })
        .get(measure_again);
  }

  const TemporaryFolder folder_;
  std::optional<std::filesystem::path> file_ = folder_.path() / "new" / "blindfuse" / "rates.json";
  int measured_ = 0;
};

TEST_F(RatesCacheTest, MeasuresOnce) {
  const Rates first = get();
  EXPECT_EQ(first.origin, rates_of_elsewhere().origin);
  EXPECT_EQ(first.core.memory_bytes_per_second, 16e9 + 1);
  EXPECT_EQ(get(), first);
  EXPECT_EQ(measured_, 1);
  EXPECT_EQ(parse_rates(read_file(*file_, kRatesBytesMax), "a"), first);
  // Nothing else is left there.
  for (const auto& entry : std::filesystem::directory_iterator(file_->parent_path())) {
    EXPECT_EQ(entry.path(), *file_);
  }
}

TEST_F(RatesCacheTest, MeasuresAgainWhenAsked) {
  get();
  const Rates second = get(true);
  EXPECT_EQ(measured_, 2);
  EXPECT_EQ(get(), second);
  EXPECT_EQ(measured_, 2);
}

TEST_F(RatesCacheTest, MeasuresAgainElsewhere) {
  get();
  const RatesOrigin here = rates_of_elsewhere().origin;
  int expected = 1;
  for (std::string RatesOrigin::*member :
       {&RatesOrigin::processor, &RatesOrigin::program, &RatesOrigin::kernels}) {
    RatesOrigin other = here;
    other.*member += " B";
    EXPECT_EQ(get_of(other).origin, other);
    EXPECT_EQ(measured_, ++expected);
    EXPECT_EQ(get_of(other).core.memory_bytes_per_second, 16e9 + expected);
    EXPECT_EQ(measured_, expected);
  }
}

TEST_F(RatesCacheTest, ReplacesWhatIsNotRates) {
  std::filesystem::create_directories(file_->parent_path());
  for (const std::string& text : {std::string("{"), std::string(100'000, '0')}) {
    std::ofstream(*file_) << text;
    const int before = measured_;
    const Rates rates = get();
    EXPECT_EQ(measured_, before + 1);
    EXPECT_EQ(get(), rates);
    EXPECT_EQ(measured_, before + 1);
  }
}

TEST_F(RatesCacheTest, GoesWithoutAPlaceForIt) {
  file_ = std::nullopt;
  EXPECT_EQ(get().core.memory_bytes_per_second, 16e9 + 1);
  EXPECT_EQ(get().core.memory_bytes_per_second, 16e9 + 2);
  // A file in the place of the folder.
  std::ofstream(folder_ / "file") << "x";
  file_ = folder_.path() / "file" / "rates.json";
  EXPECT_EQ(get().core.memory_bytes_per_second, 16e9 + 3);
}

}  // namespace
}  // namespace blindfuse
