// Every float32 backend against PyTorch's float64 losses, with three
// update rules.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/worker/backend/parity_backends.h"
#include "tests/worker/model/golden_training.h"

namespace muster {
namespace {

struct Rule {
  std::string name;
  // For the first steps, and for the later ones: float32 against float64; two
  // memory layouts of PyTorch itself differ by as much.
  double early_tolerance = 0;
  double tolerance = 0;
};

constexpr size_t kEarlySteps = 3;

std::vector<Rule> Rules() {
  return {{"sgd", 1e-4, 1e-4},
          {"momentum", 1e-3, 1e-3},
          // It divides by the root of small numbers at first, which magnifies
          // rounding.
          {"adam", 1e-4, 5e-2}};
}

// A loss is right to a few units of the last bit that factors have
// (zoo_parity_test). With fewer bits more ReLUs and maxima change sides, and
// what is learned from that adds up: 15 units were the most in 20 steps on the
// fake card, where float32 stays below its tolerances above.
constexpr double kEarlyUnits = 8;
constexpr double kUnits = 32;

using Case = std::tuple<Rule, ParityBackend>;

class ParityTest : public testing::TestWithParam<Case> {
 public:
  static std::string NameOf(const testing::TestParamInfo<Case>& info) {
    return absl::StrCat(std::get<0>(info.param).name, "_",
                        std::get<1>(info.param).label);
  }

 protected:
  const Rule& rule() const { return std::get<0>(GetParam()); }
  const ParityBackend& backend() const { return std::get<1>(GetParam()); }

  double ToleranceAt(size_t step, double loss) const {
    const bool early = step < kEarlySteps;
    const double units = early ? kEarlyUnits : kUnits;
    return std::max(std::ldexp(units * loss, -backend().factor_bits),
                    early ? rule().early_tolerance : rule().tolerance);
  }
};

TEST_P(ParityTest, AgreesWithPyTorch) {
  const auto made = backend().make();
  if (absl::IsUnavailable(made.status())) GTEST_SKIP() << made.status();
  ASSERT_TRUE(made.ok()) << made.status();
  const std::vector<double> golden = GoldenLosses(rule().name);
  const int steps = ComparedSteps(rule().name);
  const std::vector<double> losses =
      TrainGolden<float>(made->get(), rule().name, steps);
  ASSERT_EQ(losses.size(), steps);
  for (size_t i = 0; i < losses.size(); ++i) {
    EXPECT_NEAR(losses[i], golden[i], ToleranceAt(i, golden[i]))
        << "step " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, ParityTest,
                         testing::Combine(testing::ValuesIn(Rules()),
                                          testing::ValuesIn(ParityBackends())),
                         ParityTest::NameOf);

}  // namespace
}  // namespace muster
