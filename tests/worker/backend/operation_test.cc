#include "worker/backend/operation.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;
constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();

TEST(OperationTest, WindowCountsPositionsRoundedDown) {
  const WindowDesc window = {3, 2, 2, 1, 1, 0, 0, 1};
  EXPECT_EQ(window.dst_h(8), 4);
  EXPECT_EQ(window.dst_w(5), 5);
}

TEST(OperationTest, WindowRefusesSizesThatDoNotFit) {
  EXPECT_THAT((WindowDesc{3, 3}).Validate(3, 3), IsOk());
  EXPECT_THAT((WindowDesc{3, 3}).Validate(2, 3),
              StatusIs(kInvalid, testing::HasSubstr("does not fit")));
  EXPECT_THAT((WindowDesc{0, 3}).Validate(3, 3), StatusIs(kInvalid));
  EXPECT_THAT((WindowDesc{1, 1, 0, 1}).Validate(3, 3), StatusIs(kInvalid));
  EXPECT_THAT((WindowDesc{1, 1, 1, 1, -1}).Validate(3, 3), StatusIs(kInvalid));
  EXPECT_THAT((WindowDesc{1, 1, 1, 1, kHuge, kHuge}).Validate(3, 3),
              StatusIs(kInvalid));
}

TEST(OperationTest, Conv2dRefusesEmptyAndHugeShapes) {
  Conv2dDesc desc;
  EXPECT_THAT(desc.Validate(), IsOk());
  desc.dst_channels = 0;
  EXPECT_THAT(desc.Validate(),
              StatusIs(kInvalid, testing::HasSubstr("dst_channels")));
  desc.dst_channels = kHuge;
  EXPECT_THAT(desc.Validate(), StatusIs(kInvalid));
}

TEST(OperationTest, GroupsDivideTheChannels) {
  Conv2dDesc desc;
  desc.src_channels = 6;
  desc.dst_channels = 4;
  desc.groups = 2;
  EXPECT_THAT(desc.Validate(), IsOk());
  EXPECT_EQ(desc.weights_shape(), (Shape{4, 3, 1, 1}));
  for (const int64_t groups : {-1, 0, 3, 4, 12}) {
    desc.groups = groups;
    EXPECT_THAT(desc.Validate(),
                StatusIs(kInvalid, testing::HasSubstr("groups")))
        << groups;
  }
}

TEST(OperationTest, DenseRefusesEmptyAndHugeShapes) {
  EXPECT_THAT((DenseDesc{2, 3, 4}).Validate(), IsOk());
  EXPECT_THAT((DenseDesc{2, -3, 4}).Validate(), StatusIs(kInvalid));
  EXPECT_THAT((DenseDesc{2, kHuge, 4}).Validate(), StatusIs(kInvalid));
}

TEST(OperationTest, PoolRefusesPaddingOfAWholeKernelAndReluBeforeAverage) {
  PoolDesc desc = {PoolKind::kMax, 1, 1, 4, 4, {2, 2, 2, 2, 1, 1, 1, 1}};
  EXPECT_THAT(desc.Validate(), IsOk());
  desc.window.pad_left = 2;
  EXPECT_THAT(desc.Validate(), StatusIs(kInvalid));
  desc.window.pad_left = 0;
  desc.kind = PoolKind::kAverage;
  desc.relu_before = true;
  EXPECT_THAT(desc.Validate(), StatusIs(kInvalid));
}

TEST(OperationTest, RatesAndScalesHaveRanges) {
  EXPECT_THAT((DropoutDesc{0, {2}}).Validate(), IsOk());
  EXPECT_THAT((DropoutDesc{1, {2}}).Validate(), StatusIs(kInvalid));
  EXPECT_THAT((DropoutDesc{-0.1, {2}}).Validate(), StatusIs(kInvalid));
  EXPECT_THAT((DropoutDesc{std::nan(""), {2}}).Validate(), StatusIs(kInvalid));
  EXPECT_THAT((L2PenaltyDesc{-1, {2}}).Validate(), StatusIs(kInvalid));
  EXPECT_THAT((ActivationDesc{ActivationKind::kRelu, 0}).Validate(), IsOk());
  for (const double slope : {0.0, -0.1, 1.5, std::nan("")}) {
    EXPECT_THAT((ActivationDesc{ActivationKind::kLeakyRelu, slope}).Validate(),
                StatusIs(kInvalid, testing::HasSubstr("slope")));
  }
  BatchNormDesc norm;
  EXPECT_THAT(norm.Validate(), IsOk());
  norm.epsilon = 0;
  EXPECT_THAT(norm.Validate(), StatusIs(kInvalid));
}

TEST(OperationTest, ConcatWantsShapesThatDifferInChannelsOnly) {
  EXPECT_THAT((ConcatDesc{{{2, 3}, {2, 5}}}).Validate(), IsOk());
  EXPECT_EQ((ConcatDesc{{{2, 3, 4, 5}, {2, 1, 4, 5}}}).dst_shape(),
            (Shape{2, 4, 4, 5}));
  EXPECT_THAT((ConcatDesc{}).Validate(), StatusIs(kInvalid));
  EXPECT_THAT((ConcatDesc{{{2, 3}, {3, 3}}}).Validate(), StatusIs(kInvalid));
  EXPECT_THAT((ConcatDesc{{{2, 3, 4, 5}, {2, 3}}}).Validate(),
              StatusIs(kInvalid));
}

TEST(OperationTest, AddAndSoftmaxRefuseEmptyShapes) {
  EXPECT_THAT((AddDesc{0, {2}}).Validate(), StatusIs(kInvalid));
  EXPECT_THAT((AddDesc{2, {0}}).Validate(), StatusIs(kInvalid));
  EXPECT_THAT((SoftmaxCrossEntropyDesc{0, 3}).Validate(), StatusIs(kInvalid));
  for (const double smoothing : {-0.1, 1.0}) {
    EXPECT_THAT((SoftmaxCrossEntropyDesc{2, 3, smoothing}).Validate(),
                StatusIs(kInvalid));
  }
  EXPECT_THAT((TargetLossDesc{TargetLossKind::kSquaredError, 2, 0}).Validate(),
              StatusIs(kInvalid));
}

}  // namespace
}  // namespace muster
