#ifndef TESTS_WORKER_BACKEND_BACKEND_PARITY_H_
#define TESTS_WORKER_BACKEND_BACKEND_PARITY_H_

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/backend/parity_backends.h"
#include "tests/worker/backend/primitive_run.h"
#include "worker/backend/backend.h"

namespace muster {

class BackendParityTest : public testing::TestWithParam<ParityBackend> {
 public:
  static std::string NameOf(const testing::TestParamInfo<ParamType>& info) {
    return info.param.label;
  }

 protected:
  static constexpr uint64_t kSeed = 20170411;
  // exp, log, tanh, 1/sqrt: a few ulps of float32 each.
  static constexpr double kRelative = 1e-5;
  // RandomValues have so many bits; factors of so many are not rounded.
  static constexpr int kValueBits = 11;

  using Inputs = std::vector<std::pair<Operand, Values>>;

  void SetUp() override {
    auto made = GetParam().make();
    if (absl::IsUnavailable(made.status())) GTEST_SKIP() << made.status();
    ASSERT_TRUE(made.ok()) << made.status();
    backend_ = *std::move(made);
    auto oracle = CreateBackend("ref_float64", {});
    ASSERT_TRUE(oracle.ok()) << oracle.status();
    oracle_ = *std::move(oracle);
  }

  // The absolute tolerance of a sum of `terms` products of factors below 1, of
  // which the backend may round each; such errors add up as a random walk does.
  double ProductTolerance(int64_t terms) const {
    const int bits = GetParam().factor_bits;
    if (bits >= kValueBits) return SumTolerance(terms);
    return SumTolerance(terms) +
           8 * std::ldexp(std::sqrt(static_cast<double>(terms)), -bits - 1);
  }

  // Runs both primitives on the same inputs and compares the outputs.
  void Compare(Backend::Created tested, Backend::Created wanted,
               const Inputs& inputs, const std::vector<Operand>& outputs,
               double tolerance) {
    RunBoth(std::move(tested), std::move(wanted), inputs,
            [&](const PrimitiveRun& found, const PrimitiveRun& oracle) {
              for (const Operand output : outputs) {
                ExpectNear(found.Get(output), oracle.Get(output), tolerance,
                           kRelative, OperandName(output));
              }
            });
  }

  // EXPECTs NaN in dst where the oracle has it, somewhere, and nowhere else
  // unless it may spread (Winograd's sums are of whole tiles).
  void CompareNan(Backend::Created tested, Backend::Created wanted,
                  const Inputs& inputs, bool may_spread = false) {
    RunBoth(std::move(tested), std::move(wanted), inputs,
            [&](const PrimitiveRun& found, const PrimitiveRun& oracle) {
              const Values wanted_dst = oracle.Get(Operand::kDst);
              EXPECT_THAT(wanted_dst, testing::Contains(testing::IsNan()));
              Values dst = found.Get(Operand::kDst);
              for (size_t i = 0; may_spread && i < dst.size(); ++i) {
                if (!std::isnan(wanted_dst[i])) dst[i] = 0;
              }
              EXPECT_EQ(AreNan(dst), AreNan(wanted_dst));
            });
  }

  static MemoryLayout OracleLayout(const Shape& shape) {
    return MemoryLayout::RowMajor(FLOAT64, shape);
  }

  // Layouts that a backend's convolution may hand to its followers.
  std::vector<MemoryLayout> SrcLayouts(const Shape& shape) {
    std::vector<MemoryLayout> layouts = {
        MemoryLayout::RowMajor(FLOAT32, shape)};
    if (shape.rank() != 4) return layouts;
    Conv2dDesc conv;
    conv.batch = shape.dim(0);
    conv.src_channels = conv.dst_channels = shape.dim(1);
    conv.height = shape.dim(2);
    conv.width = shape.dim(3);
    auto primitive = backend_->Create(conv, Pass::kForward, {});
    EXPECT_TRUE(primitive.ok()) << primitive.status();
    if (!primitive.ok()) return layouts;
    const MemoryLayout& chosen = (*primitive)->layout(Operand::kDst);
    if (chosen != layouts[0]) layouts.push_back(chosen);
    return layouts;
  }

  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Backend> oracle_;

 private:
  static std::vector<bool> AreNan(const Values& values) {
    std::vector<bool> are_nan;
    for (const double value : values) are_nan.push_back(std::isnan(value));
    return are_nan;
  }

  // Calls look(found, oracle) when both are done.
  template <typename Look>
  void RunBoth(Backend::Created tested, Backend::Created wanted,
               const Inputs& inputs, Look look) {
    PrimitiveRun found(backend_.get(), std::move(tested));
    PrimitiveRun oracle(oracle_.get(), std::move(wanted));
    ASSERT_TRUE(found.ok() && oracle.ok());
    for (const auto& [operand, values] : inputs) {
      found.Set(operand, values);
      oracle.Set(operand, values);
    }
    ASSERT_EQ(found.Execute(), absl::OkStatus());
    ASSERT_EQ(oracle.Execute(), absl::OkStatus());
    look(found, oracle);
  }
};

}  // namespace muster

#endif  // TESTS_WORKER_BACKEND_BACKEND_PARITY_H_
