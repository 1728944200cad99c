// Convolutions on a fake card: what backend_parity_products_test does not ask.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "tests/worker/backend/cuda/product_test.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;

constexpr uint64_t kSeed = 1;

class Conv2dTest : public ProductTest {
 protected:
  // [2, 3, 5, 4] with pads that are not the same on opposite sides.
  static Conv2dDesc Uneven() {
    Conv2dDesc desc;
    desc.batch = 2;
    desc.src_channels = 3;
    desc.dst_channels = 4;
    desc.height = 5;
    desc.width = 4;
    desc.window = {3, 2, 1, 1, 2, 0, 0, 1};
    desc.relu = true;
    return desc;
  }

  // dst of random operands, computed twice by what then describes itself so at
  // its end.
  static Values Forward(Backend* backend, const Conv2dDesc& desc,
                        const std::string& end) {
    PrimitiveRun run(backend, backend->Create(desc, Pass::kForward, {}));
    if (!run.ok()) return {};
    run.Set(Operand::kSrc, RandomValues(desc.src_shape().num_elements(), kSeed))
        .Set(Operand::kWeights,
             RandomValues(desc.weights_shape().num_elements(), kSeed + 1))
        .Set(Operand::kBias, RandomValues(desc.dst_channels, kSeed + 2));
    EXPECT_THAT(run.Execute(), IsOk());
    EXPECT_THAT(run.Execute(), IsOk());
    EXPECT_THAT(run.primitive().description(), EndsWith(end));
    return run.Get(Operand::kDst);
  }
};

TEST_F(Conv2dTest, RoundsFactorsAsPrecisionSays) {
  ExpectRoundsFactorsAsPrecisionSays([](Backend* backend) {
    return backend->Create(Conv2dDesc(), Pass::kForward, {});
  });
}

TEST_F(Conv2dTest, SaysWhatItHasChosen) {
  const auto backend = Make(/*tf32=*/true);
  EXPECT_EQ((*backend->Create(Conv2dDesc(), Pass::kForward, {}))->description(),
            "cuDNN implicit_precomp_gemm, TF32, bias fused if cuDNN can");
  EXPECT_EQ(
      (*backend->Create(Conv2dDesc(), Pass::kBackwardData, {}))->description(),
      "cuDNN data algorithm 1, TF32");
  EXPECT_EQ((*backend->Create(Conv2dDesc(), Pass::kBackwardWeights, {}))
                ->description(),
            "cuDNN filter algorithm 1, TF32");
}

TEST_F(Conv2dTest, StatesChannelsLast) {
  const auto backend = Make(/*tf32=*/true);
  const auto primitive = backend->Create(Uneven(), Pass::kForward, {});
  ASSERT_THAT(primitive, IsOk());
  EXPECT_EQ((*primitive)->layout(Operand::kSrc).format, "nhwc");
  EXPECT_EQ((*primitive)->layout(Operand::kWeights).format, "krsc");
  EXPECT_EQ((*primitive)->layout(Operand::kDst).format, "nhwc");
}

TEST_F(Conv2dTest, WithOneChannelStatesRowMajor) {
  const auto backend = Make(/*tf32=*/true);
  const auto primitive = backend->Create(Conv2dDesc(), Pass::kForward, {});
  ASSERT_THAT(primitive, IsOk());
  for (const Operand operand :
       {Operand::kSrc, Operand::kWeights, Operand::kDst}) {
    EXPECT_TRUE((*primitive)->layout(operand).is_row_major());
  }
}

TEST_F(Conv2dTest, WhatCudnnDoesNotFuseHasAPassOfOurOwn) {
  const auto fused = functions_.cudnn.ConvolutionBiasActivationForward;
  Conv2dDesc desc = Uneven();
  desc.relu = false;
  for (const bool bf16 : {false, true}) {
    const auto backend = Make(/*tf32=*/false, bf16);
    functions_.cudnn.ConvolutionBiasActivationForward = fused;
    const Values at_once = Forward(backend.get(), desc, ", bias fused");
    // In bf16 cuDNN rounds with the bias, and the pass after it.
    const double tolerance = bf16 ? 1.0 / 64 : 1e-6;
    for (const cudnnStatus_t refusal :
         {CUDNN_STATUS_NOT_SUPPORTED_SHAPE, CUDNN_STATUS_BAD_PARAM,
          CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH}) {
      functions_.cudnn.ConvolutionBiasActivationForward = [refusal](auto...) {
        return refusal;
      };
      ExpectNear(Forward(backend.get(), desc, ", bias by itself"), at_once,
                 tolerance, 0, "dst");
    }
  }
}

// cuDNN's makes 0 of NaN, whatever it is told.
TEST_F(Conv2dTest, AReluIsNotFused) {
  const auto backend = Make(/*tf32=*/false);
  Conv2dDesc desc = Uneven();
  const Values found = Forward(backend.get(), desc, ", bias by itself");
  desc.relu = false;
  Values wanted = Forward(backend.get(), desc, ", bias fused");
  for (auto& value : wanted) value = std::max<double>(value, 0);
  ExpectNear(found, wanted, 1e-6, 0, "dst");
}

TEST_F(Conv2dTest, AReluKeepsNan) {
  const auto backend = Make(/*tf32=*/false);
  Conv2dDesc desc;
  desc.relu = true;
  PrimitiveRun run(backend.get(), backend->Create(desc, Pass::kForward, {}));
  ASSERT_TRUE(run.ok());
  run.Set(Operand::kSrc, {std::nan("")})
      .Set(Operand::kWeights, {1})
      .Set(Operand::kBias, {1});
  ASSERT_THAT(run.Execute(), IsOk());
  EXPECT_TRUE(std::isnan(run.Get(Operand::kDst)[0]));
}

// A call that has worked is not given up: something else is wrong then.
TEST_F(Conv2dTest, ABadParameterAfterTheFirstCallIsAnError) {
  const auto backend = Make(/*tf32=*/true);
  const auto fused = functions_.cudnn.ConvolutionBiasActivationForward;
  PrimitiveRun run(backend.get(),
                   backend->Create(Conv2dDesc(), Pass::kForward, {}));
  ASSERT_TRUE(run.ok());
  run.Set(Operand::kSrc, {1})
      .Set(Operand::kWeights, {1})
      .Set(Operand::kBias, {1});
  ASSERT_THAT(run.Execute(), IsOk());
  functions_.cudnn.ConvolutionBiasActivationForward = [](auto...) {
    return CUDNN_STATUS_BAD_PARAM;
  };
  EXPECT_THAT(run.Execute(), StatusIs(absl::StatusCode::kInternal,
                                      HasSubstr("CUDNN_STATUS_BAD_PARAM")));
}

TEST_F(Conv2dTest, WhatCudnnDoesNotSupportIsUnimplemented) {
  functions_.cudnn.GetConvolutionForwardAlgorithm_v7 = [](auto...) {
    return CUDNN_STATUS_NOT_SUPPORTED_SHAPE;
  };
  EXPECT_THAT(
      Make(/*tf32=*/true)->Create(Uneven(), Pass::kForward, {}),
      StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("of 0 algorithms")));
}

TEST_F(Conv2dTest, RefusesAlgorithmsThatGiveOtherBitsEachTime) {
  const auto list = functions_.cudnn.GetConvolutionBackwardDataAlgorithm_v7;
  functions_.cudnn.GetConvolutionBackwardDataAlgorithm_v7 =
      [list](auto handle, auto w, auto dy, auto convolution, auto dx, int count,
             int* found, cudnnConvolutionBwdDataAlgoPerf_t* perfs) {
        const cudnnStatus_t status =
            list(handle, w, dy, convolution, dx, count, found, perfs);
        for (int i = 0; i < *found; ++i) {
          perfs[i].determinism = CUDNN_NON_DETERMINISTIC;
        }
        return status;
      };
  EXPECT_THAT(Make(/*tf32=*/true)->Create(Uneven(), Pass::kBackwardData, {}),
              StatusIs(absl::StatusCode::kUnimplemented,
                       AllOf(HasSubstr("conv2d backward data of float32 [2, 3, "
                                       "5, 4] with weights [4, 3, 3, 2]"),
                             HasSubstr("of 4 algorithms"))));
}

TEST_F(Conv2dTest, RefusesMoreThanCudnnCanCount) {
  Conv2dDesc desc;
  desc.batch = int64_t{1} << 20;
  desc.height = desc.width = 46;
  EXPECT_THAT(Make(/*tf32=*/true)->Create(desc, Pass::kForward, {}),
              StatusIs(absl::StatusCode::kUnimplemented,
                       AllOf(HasSubstr("[1048576, 1, 46, 46]"),
                             HasSubstr("smaller batch"))));
}

TEST_F(Conv2dTest, EveryFailureNamesTheOperationAndItsShapes) {
  const std::string shapes =
      " of float32 [2, 3, 5, 4] with weights [4, 3, 3, 2]";
  ExpectEveryFailureSays(
      [](Backend* b) { return b->Create(Uneven(), Pass::kForward, {}); },
      "conv2d forward" + shapes);
  ExpectEveryFailureSays(
      [](Backend* b) { return b->Create(Uneven(), Pass::kBackwardData, {}); },
      "conv2d backward data" + shapes);
  ExpectEveryFailureSays(
      [](Backend* b) {
        return b->Create(Uneven(), Pass::kBackwardWeights, {});
      },
      "conv2d backward weights" + shapes);
}

}  // namespace
}  // namespace muster
