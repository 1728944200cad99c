#include "worker/backend/cuda/update_rule_kernel.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/optimizer/update_rule.h"
#include "gtest/gtest.h"
#include "tests/common/optimizer/rule_state.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/backend/cuda/host_stream.h"

namespace muster {
namespace {

constexpr uint32_t kSeed = 20211;

// Each rule with every branch of its formula.
const char* const kSpecs[] = {
    "name: 'sgd'",
    "name: 'momentum'",
    "name: 'momentum' attr { name: 'nesterov' b: true }",
    "name: 'nesterov'",
    "name: 'adagrad' attr { name: 'initial_accumulator_value' f: 0.1 }",
    "name: 'rmsprop'",
    "name: 'rmsprop' attr { name: 'momentum' f: 0.9 }",
    "name: 'adam'",
    "name: 'adamw'",
    "name: 'ftrl' attr { name: 'l1' f: 0.2 } attr { name: 'l2' f: 0.1 }",
    "name: 'ftrl' attr { name: 'beta' f: 0 }",
    "name: 'adam' schedule { name: 'cosine' decay_steps: 7 warmup_steps: 3 }",
    "name: 'ftrl' schedule { name: 'exponential' decay_rate: 0.5 "
    "decay_steps: 2 }",
};

std::vector<float> Draw(int64_t n, std::mt19937* random) {
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& value : values) {
    value = normal(*random);
    // Zeros and denormals, too.
    if ((*random)() % 8 == 0) value = 0;
    if ((*random)() % 8 == 0) value *= 1e-39f;
  }
  return values;
}

// The same parameter on the device.
class DeviceState {
 public:
  DeviceState(const UpdateRule* rule, std::vector<float> parameter)
      : rule_(rule), parameter_(std::move(parameter)) {
    for (const SlotDef& slot : rule->slots()) {
      slots_.emplace_back(parameter_.size(), slot.initial_value);
    }
  }

  absl::Status Apply(const BlockUpdate& update,
                     const std::vector<float>& gradient) {
    UpdatedElements elements;
    elements.gradient = gradient.data();
    elements.parameter = parameter_.data();
    for (size_t i = 0; i < slots_.size(); ++i) {
      elements.slots[i] = slots_[i].data();
    }
    elements.n = static_cast<int64_t>(gradient.size());
    return UpdateElements(stream_.get(), rule_->ConstantsAt(update), elements);
  }

  const std::vector<float>& parameter() const { return parameter_; }
  const std::vector<std::vector<float>>& slots() const { return slots_; }

 private:
  const HostStream stream_;
  const UpdateRule* const rule_;
  std::vector<float> parameter_;
  std::vector<std::vector<float>> slots_;
};

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

class UpdateRuleKernelTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    auto reference = CreateReferenceRule<float>(ParseOptimizer(GetParam()));
    auto rule = CreateUpdateRule(ParseOptimizer(GetParam()));
    ASSERT_THAT(reference, IsOk());
    ASSERT_THAT(rule, IsOk());
    reference_ = *std::move(reference);
    rule_ = *std::move(rule);
  }

  // Twelve updates of n elements from `first_t`, by both.
  void ExpectSameBits(int64_t n, int64_t first_t, double rate_factor) {
    SCOPED_TRACE(absl::StrCat("seed ", kSeed, ", n ", n, ", t from ", first_t,
                              ", rate factor ", rate_factor));
    std::mt19937 random(kSeed);
    const std::vector<float> start = Draw(n, &random);
    RuleState<float> expected(reference_.get(), start);
    DeviceState device(rule_.get(), start);
    for (int64_t t = first_t; t < first_t + 12; ++t) {
      const BlockUpdate update = {t, rate_factor};
      const std::vector<float> gradient = Draw(n, &random);
      expected.Apply(update, gradient);
      ASSERT_THAT(device.Apply(update, gradient), IsOk());
      ASSERT_TRUE(SameBits(device.parameter(), expected.parameter())) << t;
      for (size_t i = 0; i < expected.slots().size(); ++i) {
        ASSERT_TRUE(SameBits(device.slots()[i], expected.slots()[i]))
            << "slot " << i << ", t " << t;
      }
    }
  }

  std::unique_ptr<UpdateRuleOf<float>> reference_;
  std::unique_ptr<UpdateRule> rule_;
};

TEST_P(UpdateRuleKernelTest, HasTheBitsOfTheReference) {
  for (const int64_t n : {1, 7, 255, 257, 4099}) ExpectSameBits(n, 1, 1);
}

TEST_P(UpdateRuleKernelTest, HasThemLateAndWithARateFactor) {
  ExpectSameBits(1001, 100000, 1);
  ExpectSameBits(1001, 1, 1.0 / 3);
  ExpectSameBits(1001, 5, 0.5);
}

INSTANTIATE_TEST_SUITE_P(Rules, UpdateRuleKernelTest,
                         ::testing::ValuesIn(kSpecs));

TEST(UpdateRulesTest, EachHasAKernel) {
  for (const std::string& name : UpdateRuleNames()) {
    const auto rule =
        CreateUpdateRule(ParseOptimizer(absl::StrCat("name: '", name, "'")));
    ASSERT_THAT(rule, IsOk());
    EXPECT_FALSE(std::holds_alternative<std::monostate>(
        (*rule)->ConstantsAt(BlockUpdate())))
        << name;
  }
}

TEST(UpdateRulesTest, ReachElementsBeyondOneStepOfTheGrid) {
  const int64_t n = kMostBlocks * kBlockThreads + 7;
  const std::vector<float> gradient(n, 2);
  std::vector<float> parameter(n, 3);
  UpdatedElements elements;
  elements.gradient = gradient.data();
  elements.parameter = parameter.data();
  elements.n = n;
  const HostStream stream;
  ASSERT_THAT(UpdateElements(stream.get(), SgdConstants<float>{0.5f}, elements),
              IsOk());
  EXPECT_EQ(parameter, std::vector<float>(n, 2));
}

int64_t Sum(const std::vector<int32_t>& counts) {
  int64_t sum = 0;
  for (const int32_t count : counts) sum += count;
  return sum;
}

TEST(CountNonFiniteTest, FindsEachOfThem) {
  const float infinity = std::numeric_limits<float>::infinity();
  // One thread, a part of a block, and two blocks.
  for (const int64_t n : {1, 200, 300}) {
    std::vector<float> values(n, std::numeric_limits<float>::max());
    std::vector<int32_t> counts(kNonFiniteCounts);
    const HostStream stream;
    ASSERT_THAT(CountNonFinite(stream.get(), values.data(), n, counts.data()),
                IsOk());
    EXPECT_EQ(Sum(counts), 0);
    for (const float bad : {infinity, -infinity, std::nanf("")}) {
      for (const int64_t at : {int64_t{0}, n / 2, n - 1}) {
        values.assign(n, -1);
        values[at] = bad;
        ASSERT_THAT(
            CountNonFinite(stream.get(), values.data(), n, counts.data()),
            IsOk());
        EXPECT_EQ(Sum(counts), 1) << n << " values, " << bad << " at " << at;
      }
    }
  }
}

TEST(CountNonFiniteTest, CountsBeyondOneStepOfTheGrid) {
  const int64_t n = kNonFiniteCounts * kBlockThreads + 300;
  const std::vector<float> values(n, std::nanf(""));
  std::vector<int32_t> counts(kNonFiniteCounts);
  const HostStream stream;
  ASSERT_THAT(CountNonFinite(stream.get(), values.data(), n, counts.data()),
              IsOk());
  EXPECT_EQ(Sum(counts), n);
}

TEST(CountNonFiniteTest, TellsALaunchThatFails) {
  std::vector<float> values(3);
  std::vector<int32_t> counts(kNonFiniteCounts);
  HostStream stream;
  stream.FailAfter(0);
  EXPECT_THAT(CountNonFinite(stream.get(), values.data(), 3, counts.data()),
              StatusIs(absl::StatusCode::kInternal));
}

}  // namespace
}  // namespace muster
