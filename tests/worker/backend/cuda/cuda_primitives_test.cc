// Refusals of the primitives, and their words. That they compute as ref does:
// backend_parity_test.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/backend/cuda/fake_gpu.h"
#include "worker/backend/backend.h"
#include "worker/backend/cuda/cuda_backend.h"
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
    auto backend = MakeCudaFactory([this](const std::string&) {
                     return &gpu_.functions();
                   }).create({});
    ASSERT_THAT(backend, IsOk());
    backend_ = *std::move(backend);
    auto memory = backend_->streams()->Allocate(1 << 16, "operands");
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
  void ExpectTold(Backend::Created made, const char* operation,
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
    ASSERT_THAT(backend_->streams()->Synchronize(), IsOk());
  }

  FakeGpu gpu_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<DeviceStreams::Buffer> memory_;
};

TEST_F(CudaPrimitivesTest, EachSaysWhatItsKernelWasFor) {
  ExpectTold(
      backend_->Create(ReorderDesc{SrcShape()}, Pass::kForward,
                       {Src(), MemoryLayout::RowMajor(FLOAT32, SrcShape())}),
      "reorder");
  ExpectTold(backend_->Create(ActivationDesc(), Pass::kForward, {Src()}),
             "activation forward");
  ExpectTold(backend_->Create(ActivationDesc(), Pass::kBackward, {Src()}),
             "activation backward");
  ExpectTold(backend_->Create(DropoutDesc{0.5, SrcShape()}, Pass::kForward,
                              {MemoryLayout::RowMajor(FLOAT32, SrcShape())}),
             "dropout forward");
  ExpectTold(backend_->Create(DropoutDesc{0.5, SrcShape()}, Pass::kBackward,
                              {MemoryLayout::RowMajor(FLOAT32, SrcShape())}),
             "dropout backward");
  ExpectTold(backend_->Create(AddDesc{20, SrcShape()}, Pass::kForward,
                              std::vector<MemoryLayout>(20, Src())),
             "add 20");
  ExpectTold(
      backend_->Create(L2PenaltyDesc{0.5, SrcShape()}, Pass::kForward, {Src()}),
      "L2 penalty");
  ExpectTold(
      backend_->Create(SoftmaxCrossEntropyDesc{3, 7}, Pass::kForward, {}),
      "softmax cross-entropy", "[3, 7]");
  const ConcatDesc concat = {{SrcShape(), SrcShape()}};
  ExpectTold(backend_->Create(concat, Pass::kForward, {Src(), Src()}),
             "concat forward", "[3, 4, 4, 5]");
  ExpectTold(backend_->Create(concat, Pass::kBackward, {Src(), Src()}),
             "concat backward", "[3, 4, 4, 5]");
}

TEST_F(CudaPrimitivesTest, PoolsAndBatchNormSayWhatTheirKernelsWereFor) {
  for (const PoolKind kind : {PoolKind::kMax, PoolKind::kAverage}) {
    const PoolDesc pool = {kind, 3, 2, 4, 5, {}};
    ExpectTold(backend_->Create(pool, Pass::kForward, {Src()}), "pool forward");
    ExpectTold(backend_->Create(pool, Pass::kBackward, {Src()}),
               "pool backward");
  }
  BatchNormDesc norm = {3, 2, 4, 5};
  ExpectTold(backend_->Create(norm, Pass::kBackward, {Src()}),
             "batch norm backward");
  for (const Phase phase : {Phase::kTraining, Phase::kInference}) {
    norm.phase = phase;
    ExpectTold(backend_->Create(norm, Pass::kForward, {Src()}),
               "batch norm forward");
  }
}

TEST_F(CudaPrimitivesTest, ThoseThatCannotFollowALayoutStateRowMajor) {
  const MemoryLayout weights = KrscLayout(SrcShape());
  const PoolDesc pool = {PoolKind::kMax, 3, 2, 4, 5, {}};
  const auto followed = backend_->Create(pool, Pass::kForward, {Src()});
  const auto not_followed = backend_->Create(pool, Pass::kForward, {weights});
  ASSERT_THAT(followed, IsOk());
  ASSERT_THAT(not_followed, IsOk());
  EXPECT_EQ((*followed)->layout(Operand::kDst), Src());
  EXPECT_TRUE((*not_followed)->layout(Operand::kSrc).is_row_major());
}

TEST_F(CudaPrimitivesTest, ConcatIsNhwcWhereAllSourcesAre) {
  const Shape one = {3, 1, 4, 5};
  const ConcatDesc desc = {{SrcShape(), one}};
  const auto layout_of_dst = [&](const MemoryLayout& src) {
    const auto made = backend_->Create(
        desc, Pass::kForward, {src, MemoryLayout::RowMajor(FLOAT32, one)});
    return made.ok() ? (*made)->layout(Operand::kDst) : MemoryLayout();
  };
  // One channel lies the same way in both.
  EXPECT_EQ(layout_of_dst(Src()), NhwcLayout(desc.dst_shape()));
  EXPECT_EQ(layout_of_dst(MemoryLayout::RowMajor(FLOAT32, SrcShape())),
            MemoryLayout::RowMajor(FLOAT32, desc.dst_shape()));
}

TEST_F(CudaPrimitivesTest, DropoutWantsItsSeedOnTheDevice) {
  const auto dropout = backend_->Create(DropoutDesc{0.5, {8}}, Pass::kForward,
                                        {MemoryLayout::RowMajor(FLOAT32, {8})});
  ASSERT_THAT(dropout, IsOk());
  Operands operands = OperandsOf(**dropout);
  operands.device_seed = nullptr;
  EXPECT_THAT((*dropout)->Execute(operands),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("device_seed")));
}

TEST_F(CudaPrimitivesTest, PoolRefusesPlanesThatItsWorkspaceCannotCount) {
  PoolDesc pool = {PoolKind::kMax, 1, 1, 1 << 16, 1 << 15, {}};
  const auto src = [&] {
    return MemoryLayout::RowMajor(FLOAT32, pool.src_shape());
  };
  EXPECT_THAT(backend_->Create(pool, Pass::kForward, {src()}),
              StatusIs(absl::StatusCode::kUnimplemented));
  EXPECT_THAT(backend_->Create(pool, Pass::kBackward, {src()}),
              StatusIs(absl::StatusCode::kUnimplemented));
  pool.height -= 1;
  EXPECT_THAT(backend_->Create(pool, Pass::kForward, {src()}), IsOk());
}

TEST_F(CudaPrimitivesTest, ReorderCopiesAnyRankOfOneLayout) {
  const MemoryLayout five = MemoryLayout::RowMajor(FLOAT32, {1, 2, 3, 2, 1});
  EXPECT_THAT(
      backend_->Create(ReorderDesc{five.shape}, Pass::kForward, {five, five}),
      IsOk());
  MemoryLayout foreign = five;
  foreign.format = "blocks";
  EXPECT_THAT(backend_->Create(ReorderDesc{five.shape}, Pass::kForward,
                               {five, foreign}),
              StatusIs(absl::StatusCode::kUnimplemented));
}

}  // namespace
}  // namespace muster
