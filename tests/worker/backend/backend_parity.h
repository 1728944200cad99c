#ifndef TESTS_WORKER_BACKEND_BACKEND_PARITY_H_
#define TESTS_WORKER_BACKEND_BACKEND_PARITY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/worker/backend/primitive_run.h"
#include "worker/backend/backend.h"

namespace muster {

// A backend by name and threads, beside the oracle.
class BackendParityTest
    : public testing::TestWithParam<std::tuple<std::string, int>> {
 public:
  // The backends that are compared with the oracle.
  static auto Backends() {
    return testing::Values(std::make_tuple("ref", 1), std::make_tuple("cpu", 1),
                           std::make_tuple("cpu", 2));
  }

  static std::string NameOf(const testing::TestParamInfo<ParamType>& info) {
    return absl::StrCat(std::get<0>(info.param), "_threads",
                        std::get<1>(info.param));
  }

 protected:
  static constexpr uint64_t kSeed = 20170411;
  // exp, log, tanh, 1/sqrt: a few ulps of float32 each.
  static constexpr double kRelative = 1e-5;

  using Inputs = std::vector<std::pair<Operand, Values>>;

  // Runs both primitives on the same inputs and compares the outputs.
  void Compare(Backend::Created tested, Backend::Created wanted,
               const Inputs& inputs, const std::vector<Operand>& outputs,
               double tolerance) {
    PrimitiveRun found(backend_.get(), std::move(tested));
    PrimitiveRun oracle(oracle_.get(), std::move(wanted));
    ASSERT_TRUE(found.ok() && oracle.ok());
    for (const auto& [operand, values] : inputs) {
      found.Set(operand, values);
      oracle.Set(operand, values);
    }
    ASSERT_EQ(found.Execute(), absl::OkStatus());
    ASSERT_EQ(oracle.Execute(), absl::OkStatus());
    for (const Operand output : outputs) {
      ExpectNear(found.Get(output), oracle.Get(output), tolerance, kRelative,
                 OperandName(output));
    }
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
    auto primitive = backend_->CreateConv2dForward(conv);
    EXPECT_TRUE(primitive.ok()) << primitive.status();
    if (!primitive.ok()) return layouts;
    const MemoryLayout& chosen = (*primitive)->layout(Operand::kDst);
    if (chosen != layouts[0]) layouts.push_back(chosen);
    return layouts;
  }

  static std::unique_ptr<Backend> MakeBackend(const std::string& name,
                                              int threads) {
    auto backend = CreateBackend(name, {threads});
    EXPECT_TRUE(backend.ok()) << backend.status();
    return backend.ok() ? *std::move(backend) : nullptr;
  }

  const std::unique_ptr<Backend> backend_ =
      MakeBackend(std::get<0>(GetParam()), std::get<1>(GetParam()));
  const std::unique_ptr<Backend> oracle_ = MakeBackend("ref_float64", 1);
};

}  // namespace muster

#endif  // TESTS_WORKER_BACKEND_BACKEND_PARITY_H_
