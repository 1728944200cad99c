// What the primitives refuse, and how they say it. That they compute as ref
// does: backend_parity_test.
#include "worker/backend/cuda/cuda_primitives.h"

#include <memory>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/backend/cuda/fake_gpu.h"
#include "worker/backend/cuda/cuda_layout.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const Shape& SrcShape() {
  static const Shape shape = {3, 2, 4, 5};
  return shape;
}

MemoryLayout Src() { return NhwcLayout(SrcShape()); }

class CudaPrimitivesTest : public testing::Test {
 protected:
  void SetUp() override {
    auto device = CudaDevice::Open(&gpu_.functions(), {});
    ASSERT_THAT(device, IsOk());
    device_ = *std::move(device);
    auto memory = device_->streams().Allocate(1 << 16, "operands");
    ASSERT_THAT(memory, IsOk());
    memory_ = *std::move(memory);
  }

  // All of them in one place: what is computed is of no interest.
  Operands OperandsOf(const Primitive& primitive) {
    Operands operands;
    for (int i = 0; i < kNumOperands; ++i) {
      const auto operand = static_cast<Operand>(i);
      const auto layouts = primitive.layouts(operand);
      for (int j = 0; j < static_cast<int>(layouts.size()); ++j) {
        operands.Set(operand, memory_->data(), j);
      }
    }
    operands.rows = 1;
    operands.device_seed = reinterpret_cast<const uint64_t*>(memory_->data());
    return operands;
  }

  // Every kernel's launch in turn fails: Internal, with operation and shape.
  void ExpectTold(MadePrimitive made, const char* operation,
                  const char* shape = "[3, 2, 4, 5]") {
    SCOPED_TRACE(operation);
    ASSERT_THAT(made, IsOk());
    const Operands operands = OperandsOf(**made);
    gpu_.calls().Reset(0);
    ASSERT_THAT((*made)->Execute(operands), IsOk());
    const int64_t launches = gpu_.calls().calls();
    ASSERT_GE(launches, 1);
    for (int64_t i = 1; i <= launches; ++i) {
      gpu_.calls().Reset(i);
      EXPECT_THAT((*made)->Execute(operands),
                  StatusIs(absl::StatusCode::kInternal,
                           AllOf(HasSubstr(operation), HasSubstr(shape),
                                 HasSubstr("CUDA says"))));
      EXPECT_THAT(gpu_.calls().failed(), HasSubstr("LaunchKernel"));
    }
    gpu_.calls().Reset(0);
    ASSERT_THAT(device_->streams().Synchronize(), IsOk());
  }

  FakeGpu gpu_;
  std::unique_ptr<CudaDevice> device_;
  std::unique_ptr<DeviceStreams::Buffer> memory_;
};

TEST_F(CudaPrimitivesTest, EachSaysWhatItsKernelWasFor) {
  CudaDevice* const device = device_.get();
  ExpectTold(MakeCudaReorder(device, Src(),
                             MemoryLayout::RowMajor(FLOAT32, SrcShape())),
             "reorder");
  ExpectTold(MakeCudaActivationForward(device, {}, Src()),
             "activation forward");
  ExpectTold(MakeCudaActivationBackward(device, {}, Src()),
             "activation backward");
  ExpectTold(MakeCudaDropoutForward(device, {0.5, SrcShape()}),
             "dropout forward");
  ExpectTold(MakeCudaDropoutBackward(device, {0.5, SrcShape()}),
             "dropout backward");
  ExpectTold(MakeCudaAdd(device, {20, SrcShape()}, Src()), "add 20");
  ExpectTold(MakeCudaL2Penalty(device, {0.5, SrcShape()}, Src()), "L2 penalty");
  ExpectTold(MakeCudaSoftmaxCrossEntropy(device, {3, 7}),
             "softmax cross-entropy", "[3, 7]");
  const ConcatDesc concat = {{SrcShape(), SrcShape()}};
  ExpectTold(MakeCudaConcatForward(device, concat, {Src(), Src()}),
             "concat forward", "[3, 4, 4, 5]");
  ExpectTold(MakeCudaConcatBackward(device, concat, {Src(), Src()}),
             "concat backward", "[3, 4, 4, 5]");
}

TEST_F(CudaPrimitivesTest, PoolsAndBatchNormSayWhatTheirKernelsWereFor) {
  CudaDevice* const device = device_.get();
  for (const PoolKind kind : {PoolKind::kMax, PoolKind::kAverage}) {
    const PoolDesc pool = {kind, 3, 2, 4, 5, {}};
    ExpectTold(MakeCudaPoolForward(device, pool, Src()), "pool forward");
    ExpectTold(MakeCudaPoolBackward(device, pool, Src()), "pool backward");
  }
  BatchNormDesc norm = {3, 2, 4, 5};
  ExpectTold(MakeCudaBatchNormBackward(device, norm, Src()),
             "batch norm backward");
  for (const Phase phase : {Phase::kTraining, Phase::kInference}) {
    norm.phase = phase;
    ExpectTold(MakeCudaBatchNormForward(device, norm, Src()),
               "batch norm forward");
  }
}

TEST_F(CudaPrimitivesTest, ThoseThatCannotFollowALayoutStateRowMajor) {
  const MemoryLayout weights = KrscLayout(SrcShape());
  const PoolDesc pool = {PoolKind::kMax, 3, 2, 4, 5, {}};
  const auto followed = MakeCudaPoolForward(device_.get(), pool, Src());
  const auto not_followed = MakeCudaPoolForward(device_.get(), pool, weights);
  ASSERT_THAT(followed, IsOk());
  ASSERT_THAT(not_followed, IsOk());
  EXPECT_EQ((*followed)->layout(Operand::kDst), Src());
  EXPECT_TRUE((*not_followed)->layout(Operand::kSrc).is_row_major());
}

TEST_F(CudaPrimitivesTest, ConcatIsNhwcWhereAllSourcesAre) {
  const Shape one = {3, 1, 4, 5};
  const ConcatDesc desc = {{SrcShape(), one}};
  const auto layout_of_dst = [&](const MemoryLayout& src) {
    const auto made = MakeCudaConcatForward(
        device_.get(), desc, {src, MemoryLayout::RowMajor(FLOAT32, one)});
    return made.ok() ? (*made)->layout(Operand::kDst) : MemoryLayout();
  };
  // One channel lies the same way in both.
  EXPECT_EQ(layout_of_dst(Src()), NhwcLayout(desc.dst_shape()));
  EXPECT_EQ(layout_of_dst(MemoryLayout::RowMajor(FLOAT32, SrcShape())),
            MemoryLayout::RowMajor(FLOAT32, desc.dst_shape()));
}

TEST_F(CudaPrimitivesTest, DropoutWantsItsSeedOnTheDevice) {
  const auto dropout = MakeCudaDropoutForward(device_.get(), {0.5, {8}});
  ASSERT_THAT(dropout, IsOk());
  Operands operands = OperandsOf(**dropout);
  operands.device_seed = nullptr;
  EXPECT_THAT((*dropout)->Execute(operands),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("device_seed")));
}

TEST_F(CudaPrimitivesTest, PoolRefusesPlanesThatItsWorkspaceCannotCount) {
  PoolDesc pool = {PoolKind::kMax, 1, 1, 1 << 16, 1 << 15, {}};
  EXPECT_THAT(MakeCudaPoolForward(device_.get(), pool, Src()),
              StatusIs(absl::StatusCode::kUnimplemented));
  EXPECT_THAT(MakeCudaPoolBackward(device_.get(), pool, Src()),
              StatusIs(absl::StatusCode::kUnimplemented));
  pool.height -= 1;
  EXPECT_THAT(MakeCudaPoolForward(device_.get(), pool, Src()), IsOk());
}

TEST_F(CudaPrimitivesTest, ReorderCopiesAnyRankOfOneLayout) {
  const MemoryLayout five = MemoryLayout::RowMajor(FLOAT32, {1, 2, 3, 2, 1});
  EXPECT_THAT(MakeCudaReorder(device_.get(), five, five), IsOk());
  MemoryLayout foreign = five;
  foreign.format = "blocks";
  EXPECT_THAT(MakeCudaReorder(device_.get(), five, foreign),
              StatusIs(absl::StatusCode::kUnimplemented));
}

}  // namespace
}  // namespace muster
