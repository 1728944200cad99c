#include "common/optimizer/update_rule.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/codec/codec.h"
#include "common/codec/value_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "hwy/highway.h"
#include "tests/common/optimizer/rule_state.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint32_t kSeed = 20171;

// Every branch of every rule.
const char* const kSpecs[] = {
    "name: 'sgd' attr { name: 'learning_rate' f: 0.1 }",
    "name: 'momentum' attr { name: 'learning_rate' f: 0.1 }",
    "name: 'momentum' attr { name: 'nesterov' b: true }",
    "name: 'nesterov'",
    "name: 'adagrad'",
    "name: 'adagrad' attr { name: 'initial_accumulator_value' f: 0.1 }"
    " attr { name: 'epsilon' f: 1e-30 }",
    "name: 'rmsprop'",
    "name: 'rmsprop' attr { name: 'momentum' f: 0.9 }",
    "name: 'adam'",
    "name: 'adam' schedule { name: 'cosine' decay_steps: 3 }",
    "name: 'adamw' attr { name: 'weight_decay' f: 0.1 }",
    "name: 'ftrl'",
    "name: 'ftrl' attr { name: 'l1' f: 0.3 } attr { name: 'l2' f: 0.2 }"
    " attr { name: 'beta' f: 0 }",
    "name: 'ftrl' schedule { name: 'cosine' decay_steps: 3 }"};

std::vector<float> Random(size_t n, std::mt19937* generator) {
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> values(n);
  for (float& value : values) value = normal(*generator);
  return values;
}

// With some that the rules of squares take for 0, and some just above.
std::vector<float> RandomGradient(size_t n, std::mt19937* generator) {
  std::vector<float> values = Random(n, generator);
  for (size_t i = 0; i < n; i += 3) values[i] *= 1e-19f;
  return values;
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return false;
  // memcmp takes no null pointer, not even for nothing.
  return a.empty() ||
         std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

void SetLearningRate(double rate, OptimizerSpec* spec) {
  for (Attr& attr : *spec->mutable_attr()) {
    if (attr.name() == "learning_rate") {
      attr.set_f(rate);
      return;
    }
  }
  Attr* const attr = spec->add_attr();
  attr->set_name("learning_rate");
  attr->set_f(rate);
}

// Lets Highway use one instruction set, then all of the machine again.
class OnlyTarget {
 public:
  explicit OnlyTarget(int64_t target) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  ~OnlyTarget() {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
};

class EveryRuleTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const OptimizerSpec spec = ParseOptimizer(GetParam());
    auto fast = CreateUpdateRule(spec);
    ASSERT_THAT(fast, IsOk());
    fast_ = *std::move(fast);
    auto reference = CreateReferenceRule<float>(spec);
    ASSERT_THAT(reference, IsOk());
    reference_ = *std::move(reference);
  }

  // No tolerance: without fused multiply-add, +, -, *, / and sqrt are exactly
  // rounded in every instruction set, and both do them in the same order.
  void ExpectSameBits(size_t n) {
    std::mt19937 generator(kSeed);
    const std::vector<float> start = Random(n, &generator);
    RuleState<float> fast(fast_.get(), start);
    RuleState<float> reference(reference_.get(), start);
    for (int64_t t = 1; t <= 5; ++t) {
      const std::vector<float> gradient = RandomGradient(n, &generator);
      const BlockUpdate update{t, 1.0 / static_cast<double>(t % 3 + 1)};
      fast.Apply(update, gradient);
      reference.Apply(update, gradient);
    }
    EXPECT_TRUE(SameBits(fast.parameter(), reference.parameter()))
        << "n " << n << ", seed " << kSeed;
    for (size_t i = 0; i < fast.slots().size(); ++i) {
      EXPECT_TRUE(SameBits(fast.slots()[i], reference.slots()[i]))
          << fast_->slots()[i].name << ", n " << n << ", seed " << kSeed;
    }
  }

  // The same of a gradient as a codec leaves it: the twin gets it decoded. The
  // new values are also written over memory that is at first the gradient's.
  void ExpectSameBitsEncoded(const Codec* codec, size_t n) {
    std::mt19937 generator(kSeed);
    const std::vector<float> start = Random(n, &generator);
    RuleState<float> fast(fast_.get(), start);
    RuleState<float> reference(reference_.get(), start);
    const auto count = static_cast<int64_t>(n);
    for (int64_t t = 1; t <= 3; ++t) {
      std::vector<float> published = Random(n, &generator);
      if (codec == nullptr) {
        reference.Apply(t, published);
        fast.ApplyEncoded(t, AsEncoded(published.data()), published.data());
      } else {
        // One byte off any alignment.
        std::vector<char> encoded(EncodedBytes(codec, count) + 1);
        codec->Encode(published.data(), count, encoded.data() + 1);
        std::vector<float> decoded(n);
        codec->Decode(encoded.data() + 1, count, decoded.data());
        reference.Apply(t, decoded);
        fast.ApplyEncoded(t, {codec->format(), encoded.data() + 1},
                          published.data());
      }
      EXPECT_TRUE(SameBits(published, fast.parameter())) << "n " << n;
    }
    EXPECT_TRUE(SameBits(fast.parameter(), reference.parameter()))
        << "n " << n << ", seed " << kSeed;
    for (size_t i = 0; i < fast.slots().size(); ++i) {
      EXPECT_TRUE(SameBits(fast.slots()[i], reference.slots()[i]))
          << fast_->slots()[i].name << ", n " << n << ", seed " << kSeed;
    }
  }

  std::unique_ptr<UpdateRule> fast_;
  std::unique_ptr<UpdateRuleOf<float>> reference_;
};

TEST_P(EveryRuleTest, AgreesWithItsTwinOnEveryInstructionSet) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    OnlyTarget only(target);
    for (size_t n = 0; n <= 35; ++n) ExpectSameBits(n);
    ExpectSameBits(65536 + 3);
  }
}

TEST_P(EveryRuleTest, DecodesAGradientToTheBitOnEveryInstructionSet) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    OnlyTarget only(target);
    for (const char* const codec : {"", "bf16", "fp16"}) {
      SCOPED_TRACE(absl::StrCat(hwy::TargetName(target), " ", codec));
      for (size_t n = 0; n <= 35; ++n) {
        ExpectSameBitsEncoded(FindCodec(codec).value(), n);
      }
      ExpectSameBitsEncoded(FindCodec(codec).value(), 2 * 2048 + 19);
    }
  }
}

TEST_P(EveryRuleTest, DoesNotDependOnHowATensorIsCut) {
  constexpr size_t kElements = 101;
  std::mt19937 generator(kSeed);
  const std::vector<float> start = Random(kElements, &generator);
  RuleState<float> whole(fast_.get(), start);
  RuleState<float> cut(fast_.get(), start);
  for (int64_t t = 1; t <= 3; ++t) {
    const std::vector<float> gradient = Random(kElements, &generator);
    whole.Apply(t, gradient);
    cut.Apply(t, gradient, 0, 7);
    cut.Apply(t, gradient, 7, 50);
    cut.Apply(t, gradient, 50, kElements);
  }
  EXPECT_TRUE(SameBits(whole.parameter(), cut.parameter()));
}

TEST_P(EveryRuleTest, WritesNothingBeyondItsElements) {
  RuleState<float> state(fast_.get(), std::vector<float>(20, 1.0f));
  const std::vector<float> gradient(20, 1.0f);
  state.Apply(1, gradient, 3, 16);
  for (const size_t i : {0, 1, 2, 16, 17, 18, 19}) {
    EXPECT_EQ(state.parameter()[i], 1.0f) << i;
    for (size_t s = 0; s < state.slots().size(); ++s) {
      EXPECT_EQ(state.slots()[s][i], fast_->slots()[s].initial_value) << i;
    }
  }
}

// The first update with factor 1/4 is that of the rule with a quarter of the
// learning rate; not so an update by a quarter of the gradient.
TEST_P(EveryRuleTest, ARateFactorScalesTheLearningRate) {
  OptimizerSpec spec = ParseOptimizer(GetParam());
  const auto rule = CreateReferenceRule<double>(spec);
  ASSERT_THAT(rule, IsOk());
  SetLearningRate(LearningRateOf(spec)->base() / 4, &spec);
  const auto slow_rule = CreateReferenceRule<double>(spec);
  ASSERT_THAT(slow_rule, IsOk());
  // FTRL writes parameters from its slots alone: at 0 both are at their start.
  const double start = spec.name() == "ftrl" ? 0 : 0.75;
  RuleState<double> state(rule->get(), {start, start});
  RuleState<double> slow(slow_rule->get(), {start, start});
  state.Apply({/*t=*/1, /*rate_factor=*/0.25}, {3.0, -0.5});
  slow.Apply(1, {3.0, -0.5});
  for (size_t i = 0; i < 2; ++i) {
    // 1 / 4 is exact; FTRL's constants round otherwise.
    EXPECT_NEAR(state.parameter()[i], slow.parameter()[i], 1e-15);
    EXPECT_NE(state.parameter()[i], start);
  }
}

TEST_P(EveryRuleTest, StaysFiniteOnZeroGradients) {
  RuleState<float> state(fast_.get(), {0.0f, 1.0f, -2.0f});
  for (int64_t t = 1; t <= 10; ++t) state.Apply(t, {0.0f, 0.0f, 0.0f});
  for (const float value : state.parameter()) {
    EXPECT_TRUE(std::isfinite(value)) << value;
  }
}

TEST_P(EveryRuleTest, TakesNaNForNothingElse) {
  RuleState<float> state(fast_.get(), {1.0f});
  state.Apply(1, {std::nanf("")});
  EXPECT_TRUE(std::isnan(state.parameter()[0]));
}

TEST_P(EveryRuleTest, StepsAgainstTheGradient) {
  RuleState<float> state(fast_.get(), {0.0f, 0.0f});
  state.Apply(1, {4.0f, -4.0f});
  EXPECT_LT(state.parameter()[0], 0);
  EXPECT_GT(state.parameter()[1], 0);
}

INSTANTIATE_TEST_SUITE_P(Specs, EveryRuleTest, ::testing::ValuesIn(kSpecs));

// Squares of these are 0, denormal or normal in float, and normal in double.
TEST(UpdateRuleTest, TinyGradientsMoveNothingFartherThanExactOnesWould) {
  const std::vector<float> gradients = {1e-45f,     3e-40f, 1e-30f, 1e-23f,
                                        -3e-23f,    1e-22f, 1e-20f, 1.08e-19f,
                                        -1.09e-19f, 1e-18f, 0.01f};
  for (const char* const text :
       {"name: 'ftrl' attr { name: 'beta' f: 0 }",
        "name: 'adagrad' attr { name: 'epsilon' f: 1e-30 }",
        "name: 'rmsprop' attr { name: 'epsilon' f: 1e-30 }",
        "name: 'rmsprop' attr { name: 'epsilon' f: 1e-30 } "
        "attr { name: 'momentum' f: 0.5 }",
        "name: 'adam' attr { name: 'epsilon' f: 1e-30 }",
        "name: 'adamw' attr { name: 'epsilon' f: 1e-30 }"}) {
    const auto rule = CreateUpdateRule(ParseOptimizer(text));
    const auto exact_rule = CreateReferenceRule<double>(ParseOptimizer(text));
    ASSERT_THAT(rule, IsOk());
    ASSERT_THAT(exact_rule, IsOk());
    RuleState<float> state(rule->get(),
                           std::vector<float>(gradients.size(), 0.0f));
    RuleState<double> exact(exact_rule->get(),
                            std::vector<double>(gradients.size(), 0.0));
    for (int64_t t = 1; t <= 300; ++t) {
      state.Apply(t, gradients);
      exact.Apply(t, {gradients.begin(), gradients.end()});
      for (size_t i = 0; i < gradients.size(); ++i) {
        // Adam's v has four digits where its squares begin to be normal.
        EXPECT_LE(std::abs(state.parameter()[i]),
                  std::abs(exact.parameter()[i]) * (1 + 1e-3))
            << text << ", gradient " << gradients[i] << ", update " << t;
      }
    }
    EXPECT_NEAR(state.parameter().back(), exact.parameter().back(),
                1e-4 * std::abs(exact.parameter().back()));
  }
}

TEST(UpdateRuleTest, SgdIsExactOnIntegers) {
  auto rule = CreateUpdateRule(
      ParseOptimizer("name: 'sgd' attr { name: 'learning_rate' i: 1 }"));
  ASSERT_THAT(rule, IsOk());
  RuleState<float> state(rule->get(), {0.0f, 100.0f, -3.0f});
  for (int64_t t = 1; t <= 1000; ++t) state.Apply(t, {-1.0f, 2.0f, 0.0f});
  EXPECT_THAT(state.parameter(), ElementsAre(1000.0f, -1900.0f, -3.0f));
}

// With l1 = l2 = 0 FTRL is p -= lr / (beta + sqrt(n)) * g, as long as p was
// written by the rule.
TEST(UpdateRuleTest, FtrlsRateFactorLastsForOneUpdate) {
  const auto rule = CreateReferenceRule<double>(
      ParseOptimizer("name: 'ftrl' attr { name: 'learning_rate' f: 0.5 }"));
  ASSERT_THAT(rule, IsOk());
  RuleState<double> state(rule->get(), {0.0});
  double expected = 0;
  double n = 0;
  for (int64_t t = 1; t <= 9; ++t) {
    const double factor = 1.0 / static_cast<double>(t % 3 + 1);
    const double g = static_cast<double>(t % 4) - 1.5;
    state.Apply({t, factor}, {g});
    n += g * g;
    expected -= 0.5 * factor / (1 + std::sqrt(n)) * g;
    // Nine sums of magnitude 1 in double.
    EXPECT_NEAR(state.parameter()[0], expected, 1e-14) << t;
  }
}

TEST(UpdateRuleTest, SeesTheScheduleAtCompletedUpdates) {
  auto rule = CreateUpdateRule(ParseOptimizer(
      "name: 'sgd' attr { name: 'learning_rate' i: 1 } schedule { name: "
      "'exponential' decay_rate: 0.5 decay_steps: 1 }"));
  ASSERT_THAT(rule, IsOk());
  RuleState<float> state(rule->get(), {0.0f});
  state.Apply(1, {-1.0f});
  EXPECT_THAT(state.parameter(), ElementsAre(1.0f));
  state.Apply(2, {-1.0f});
  EXPECT_THAT(state.parameter(), ElementsAre(1.5f));
}

TEST(UpdateRuleTest, TellsTheLearningRateOfARule) {
  const auto rate = LearningRateOf(ParseOptimizer(
      "name: 'sgd' attr { name: 'learning_rate' f: 0.5 } schedule { name: "
      "'exponential' decay_rate: 0.5 decay_steps: 1 }"));
  ASSERT_THAT(rate, IsOk());
  EXPECT_EQ(rate->At(0), 0.5);
  EXPECT_EQ(rate->At(2), 0.125);
  const auto standard = LearningRateOf(ParseOptimizer("name: 'adam'"));
  ASSERT_THAT(standard, IsOk());
  EXPECT_EQ(standard->At(7), 0.001);
  EXPECT_THAT(LearningRateOf(ParseOptimizer("name: 'adan'")),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST(UpdateRuleTest, NamesTheNearestRule) {
  EXPECT_THAT(CreateUpdateRule(ParseOptimizer("name: 'adan'")),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("'adan'"), HasSubstr("'adam'"))));
}

TEST(UpdateRuleTest, RefusesWrongSettingsByName) {
  const auto refuses = [](const std::string& text, const std::string& part) {
    EXPECT_THAT(CreateUpdateRule(ParseOptimizer(text)),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(part)))
        << text;
  };
  refuses("name: 'adam' attr { name: 'learning_rat' f: 1 }",
          "optimizer 'adam': unknown attribute 'learning_rat'");
  refuses("name: 'sgd' attr { name: 'learning_rate' f: -0.1 }",
          "'learning_rate' must be > 0");
  refuses("name: 'sgd' attr { name: 'learning_rate' f: 0 }", "> 0");
  refuses("name: 'sgd' attr { name: 'learning_rate' f: nan }", "nan");
  refuses("name: 'sgd' attr { name: 'learning_rate' s: '1' }", "type float");
  refuses("name: 'adam' attr { name: 'beta1' f: 1 }", "'beta1'");
  refuses("name: 'adam' attr { name: 'weight_decay' f: 0.1 }", "unknown");
  refuses("name: 'momentum' attr { name: 'momentum' f: -1 }", "'momentum'");
  refuses("name: 'ftrl' attr { name: 'l1' f: -1 }", "'l1'");
  refuses("name: 'adagrad' attr { name: 'epsilon' f: 0 }", "'epsilon'");
  refuses("name: 'adam' schedule { name: 'step' }",
          "optimizer 'adam': unknown schedule 'step'");
}

TEST(UpdateRuleTest, FindsAttributesByRule) {
  const auto attributes = UpdateRuleAttributes("adam");
  ASSERT_THAT(attributes, IsOk());
  EXPECT_THAT(FindAttr(*attributes, "learning_rate"), IsOk());
  EXPECT_THAT(UpdateRuleAttributes("adan"),
              StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace muster
