// The double twins against numbers that others made: torch.optim, and the
// published algorithm of FTRL.
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "common/optimizer/update_rule.h"
#include "gtest/gtest.h"
#include "tests/common/optimizer/rule_state.h"
#include "tests/common/optimizer/torch_golden.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

// Twenty steps of double rounding in another order, at values about 1, are
// below 1e-14; a wrong epsilon of 1e-8 shows as 1e-9 and more.
constexpr double kTolerance = 1e-12;

// Exact in binary, as in generate_torch_golden.py.
double GoldenGradient(int64_t t, int64_t i) {
  return static_cast<double>((t * 7 + i * 13) % 11 - 5) / 8;
}

std::vector<double> GoldenGradients(int64_t t) {
  std::vector<double> gradient;
  for (int64_t i = 0; i < kGoldenElements; ++i) {
    gradient.push_back(GoldenGradient(t, i));
  }
  return gradient;
}

class TorchGoldenTest : public ::testing::TestWithParam<TorchGolden> {};

TEST_P(TorchGoldenTest, AgreesWithTorch) {
  auto rule = CreateReferenceRule<double>(ParseOptimizer(GetParam().spec));
  ASSERT_THAT(rule, IsOk());
  RuleState<double> state(
      rule->get(),
      std::vector<double>(kGoldenStart, kGoldenStart + kGoldenElements));
  for (int t = 1; t <= kGoldenSteps; ++t) {
    state.Apply(t, GoldenGradients(t));
    for (int i = 0; i < kGoldenElements; ++i) {
      EXPECT_NEAR(state.parameter()[i], GetParam().parameters[t - 1][i],
                  kTolerance)
          << "step " << t << ", element " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, TorchGoldenTest,
                         ::testing::ValuesIn(kTorchGoldens),
                         [](const auto& info) {
                           return std::string(info.param.name);
                         });

// Algorithm 1 of McMahan et al. 2013 for one coordinate, line by line: the
// weight is made from z before each round.
struct PublishedFtrl {
  double alpha, beta, l1, l2;
  double z = 0;
  double n = 0;

  double Weight() const {
    if (std::abs(z) <= l1) return 0;
    const double sign = z < 0 ? -1 : 1;
    return -1 / ((beta + std::sqrt(n)) / alpha + l2) * (z - sign * l1);
  }
  void Round(double gradient) {
    const double weight = Weight();
    const double sigma =
        1 / alpha * (std::sqrt(n + gradient * gradient) - std::sqrt(n));
    z += gradient - sigma * weight;
    n += gradient * gradient;
  }
};

TEST(FtrlTest, IsThePublishedAlgorithm) {
  auto rule = CreateReferenceRule<double>(ParseOptimizer(
      "name: 'ftrl' attr { name: 'learning_rate' f: 0.3 } attr { name: 'beta' "
      "f: 0.7 } attr { name: 'l1' f: 0.4 } attr { name: 'l2' f: 0.25 }"));
  ASSERT_THAT(rule, IsOk());
  RuleState<double> state(rule->get(),
                          std::vector<double>(kGoldenElements, 0.0));
  std::vector<PublishedFtrl> published(kGoldenElements, {0.3, 0.7, 0.4, 0.25});
  int zeros = 0;
  for (int64_t t = 1; t <= 50; ++t) {
    state.Apply(t, GoldenGradients(t));
    for (int64_t i = 0; i < kGoldenElements; ++i) {
      published[i].Round(GoldenGradient(t, i));
      EXPECT_NEAR(state.parameter()[i], published[i].Weight(), kTolerance)
          << "round " << t << ", element " << i;
      if (published[i].Weight() == 0) ++zeros;
    }
  }
  // Both branches were taken.
  EXPECT_GT(zeros, 0);
  EXPECT_LT(zeros, 50 * kGoldenElements);
}

TEST(FtrlTest, ADecayingRateDoesNotPullParametersToZero) {
  auto rule = CreateReferenceRule<double>(ParseOptimizer(
      "name: 'ftrl' schedule { name: 'cosine' decay_steps: 20 }"));
  ASSERT_THAT(rule, IsOk());
  RuleState<double> state(rule->get(), {0.0});
  for (int64_t t = 1; t <= 10; ++t) state.Apply(t, {-1.0});
  const double half_way = state.parameter()[0];
  EXPECT_GT(half_way, 0.1);
  for (int64_t t = 11; t <= 30; ++t) state.Apply(t, {0.0});
  EXPECT_NEAR(state.parameter()[0], half_way, 1e-6);
}

}  // namespace
}  // namespace muster
