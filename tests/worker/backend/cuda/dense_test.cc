// Dense layers on a fake card: what backend_parity_products_test does not ask.
#include <cstdint>
#include <string>

#include "tests/worker/backend/cuda/product_test.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class DenseTest : public ProductTest {
 protected:
  // Odd sizes.
  static DenseDesc Odd() { return {3, 7, 5, true, true}; }
};

TEST_F(DenseTest, RoundsFactorsAsPrecisionSays) {
  ExpectRoundsFactorsAsPrecisionSays([](Backend* backend) {
    return backend->Create(DenseDesc(), Pass::kForward, {});
  });
}

// Sums and results of bf16 products stay float32, and so does the bias.
TEST_F(DenseTest, RoundsNothingButFactors) {
  const auto backend = Make(/*tf32=*/true, /*bf16=*/true);
  PrimitiveRun run(backend.get(),
                   backend->Create(DenseDesc{1, 2, 1}, Pass::kForward, {}));
  ASSERT_TRUE(run.ok());
  run.Set(Operand::kSrc, {1, 1})
      .Set(Operand::kWeights, {1, 1.0 / 1024})
      .Set(Operand::kBias, {kFine});
  ASSERT_THAT(run.Execute(), IsOk());
  EXPECT_EQ(run.Get(Operand::kDst)[0], 1 + 1.0 / 1024 + kFine);
}

// The fake's algorithm that adds in place gives 1, then 0.
TEST_F(DenseTest, GivesTheSameBitsInEveryRun) {
  const auto backend = Make(/*tf32=*/false);
  PrimitiveRun run(backend.get(),
                   backend->Create(DenseDesc{1, 3, 1}, Pass::kForward, {}));
  ASSERT_TRUE(run.ok());
  run.Set(Operand::kSrc, {1e8, -1e8, 1})
      .Set(Operand::kWeights, {1, 1, 1})
      .Set(Operand::kBias, {0});
  for (int i = 0; i < 3; ++i) {
    ASSERT_THAT(run.Execute(), IsOk());
    EXPECT_EQ(run.Get(Operand::kDst)[0], 1);
  }
}

TEST_F(DenseTest, SaysWhatItHasChosen) {
  const auto backend = Make(/*tf32=*/false);
  EXPECT_EQ((*backend->Create(Odd(), Pass::kForward, {}))->description(),
            "cuBLASLt, float32");
}

// Operands are aligned to 64 bytes alone; cuBLASLt wants more of a workspace.
TEST_F(DenseTest, TakesOperandsThatAreBarelyAligned) {
  constexpr int64_t kBarely = 64;
  const auto backend = Make(/*tf32=*/true, /*bf16=*/true);
  for (const auto& primitive :
       {backend->Create(Odd(), Pass::kForward, {}),
        backend->Create(Odd(), Pass::kBackwardData, {}),
        backend->Create(Odd(), Pass::kBackwardWeights, {})}) {
    ASSERT_THAT(primitive, IsOk());
    std::vector<std::unique_ptr<DeviceStreams::Buffer>> memory;
    const Operands operands =
        Allocate(backend.get(), **primitive, &memory, kBarely);
    EXPECT_THAT((*primitive)->Execute(operands), IsOk());
    EXPECT_THAT(backend->streams()->Synchronize(), IsOk());
  }
}

TEST_F(DenseTest, SaysThatCublasHasNoAlgorithm) {
  functions_.cublas.MatmulAlgoGetHeuristic =
      [](auto, auto, auto, auto, auto, auto, auto, int, auto, int* found) {
        *found = 0;
        return CUBLAS_STATUS_SUCCESS;
      };
  EXPECT_THAT(
      Make(/*tf32=*/true)->Create(Odd(), Pass::kForward, {}),
      StatusIs(absl::StatusCode::kUnimplemented,
               AllOf(HasSubstr(
                         "dense forward of float32 [3, 7] with weights [5, 7]"),
                     HasSubstr("of 0 algorithms"))));
}

TEST_F(DenseTest, WhatCublasDoesNotSupportIsUnimplemented) {
  functions_.cublas.MatmulAlgoGetHeuristic = [](auto...) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  };
  EXPECT_THAT(
      Make(/*tf32=*/true)->Create(Odd(), Pass::kForward, {}),
      StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("of 0 algorithms")));
}

TEST_F(DenseTest, EveryFailureNamesTheOperationAndItsShapes) {
  const std::string shapes = " of float32 [3, 7] with weights [5, 7]";
  ExpectEveryFailureSays(
      [](Backend* b) { return b->Create(Odd(), Pass::kForward, {}); },
      "dense forward" + shapes);
  ExpectEveryFailureSays(
      [](Backend* b) { return b->Create(Odd(), Pass::kBackwardData, {}); },
      "dense backward data" + shapes);
  ExpectEveryFailureSays(
      [](Backend* b) { return b->Create(Odd(), Pass::kBackwardWeights, {}); },
      "dense backward weights" + shapes);
}

}  // namespace
}  // namespace muster
