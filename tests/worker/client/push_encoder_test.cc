// The residual, by what became of the push.
#include "worker/client/push_encoder.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/cluster/placement.h"
#include "common/codec/codec.h"
#include "common/rpc/protocol.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

// Needs more bits than bf16 has: 257 becomes 256, and leaves 1.
constexpr float kGradient = 257;
constexpr float kSent = 256;
// By tensor; the second is a state tensor, on the shard of the first.
constexpr int64_t kSizes[] = {10, 6, 20};
constexpr int kShards = 2;

class PushEncoderTest : public testing::Test {
 protected:
  PushEncoderTest() {
    for (const int64_t size : kSizes) {
      TensorDef& tensor = model_.tensors.emplace_back();
      tensor.set_name(absl::StrCat("tensor", model_.tensors.size()));
      tensor.add_shape(size);
      tensor.set_dtype(FLOAT32);
      gradients_.emplace_back(size, kGradient);
    }
    model_.tensors[1].set_kind(STATE);
    model_.plan = PlanTransfer(model_.tensors,
                               PlaceWhole(model_.tensors, {0, 0, 1}).value(),
                               std::vector<int64_t>(kShards, kMaxPartBytes))
                      .value();
  }

  // Encodes a gradient of `value` everywhere as the next step; returns what the
  // shards decode for the first value of each tensor.
  std::vector<float> Push(float value) {
    for (std::vector<float>& gradient : gradients_) {
      gradient.assign(gradient.size(), value);
    }
    std::vector<TensorView> views;
    for (const std::vector<float>& gradient : gradients_) {
      views.push_back(ViewOf(absl::MakeConstSpan(gradient)));
    }
    const auto encoded = encoder_.Begin(++step_, model_, views);
    std::vector<float> decoded;
    for (const EncodedParts::Run& run : encoded->runs()) {
      encoder_.Part(encoded.get(), run.shard, run.part);
      std::vector<float> values(run.length);
      codec_->Decode(encoded->bytes_of(run), run.length, values.data());
      EXPECT_EQ(values, std::vector<float>(run.length, values[0]));
      decoded.push_back(values[0]);
    }
    return decoded;
  }

  // The residual: the next gradient of zeros brings it.
  std::vector<float> Residual() { return Push(0); }

  const Codec* const codec_ = FindCodec("bf16").value();
  PushEncoder encoder_{codec_, /*error_feedback=*/true};
  ClientModel model_;
  std::vector<std::vector<float>> gradients_;
  int64_t step_ = 0;
};

using Values = std::vector<float>;

TEST_F(PushEncoderTest, WhatWasAppliedOwesWhatTheCodecTook) {
  EXPECT_EQ(Push(kGradient), Values(3, kSent));
  encoder_.OnApplied();
  EXPECT_EQ(Residual(), (Values{1, 0, 1}));
}

TEST_F(PushEncoderTest, WhatWasDroppedReturnsWhole) {
  EXPECT_EQ(Push(kGradient), Values(3, kSent));
  encoder_.OnDropped();
  // Twice 257, as bf16 has it; what a state tensor was sent is gone.
  EXPECT_EQ(Push(kGradient), (Values{512, kSent, 512}));
  encoder_.OnApplied();
  EXPECT_EQ(Residual(), (Values{2, 0, 2}));
}

TEST_F(PushEncoderTest, WhatFailedReturnsOnlyTheResidual) {
  Push(kGradient);
  encoder_.OnApplied();
  // 258 fits.
  EXPECT_EQ(Push(kGradient), (Values{258, kSent, 258}));
  encoder_.OnFailed([](int, int) { return false; });
  EXPECT_EQ(Push(kGradient), (Values{258, kSent, 258})) << "once, not twice";
  encoder_.OnApplied();
  EXPECT_EQ(Residual(), Values(3, 0));
}

TEST_F(PushEncoderTest, OfAPushThatFailedThePartsThatWereAppliedOwe) {
  Push(kGradient);
  encoder_.OnFailed([](int shard, int) { return shard == 1; });
  EXPECT_EQ(Residual(), (Values{0, 0, 1}));
}

TEST_F(PushEncoderTest, AStoredPushOwesNothingBeforeItIsSettled) {
  Push(kGradient);
  encoder_.OnStored();
  encoder_.Settle(/*chosen_step=*/1);
  EXPECT_EQ(Residual(), (Values{1, 0, 1}));
}

TEST_F(PushEncoderTest, AStoredPushThatWasNotChosenReturnsWhole) {
  Push(kGradient);
  encoder_.OnApplied();
  Push(kGradient);
  encoder_.OnStored();
  encoder_.Settle(/*chosen_step=*/1);
  EXPECT_EQ(Residual(), (Values{258, 0, 258}));
}

TEST_F(PushEncoderTest, OnlyAStoredPushIsSettled) {
  Push(kGradient);
  encoder_.OnDropped();
  encoder_.Settle(/*chosen_step=*/0);
  encoder_.Settle(/*chosen_step=*/1);
  EXPECT_EQ(Residual(), (Values{256, 0, 256}));  // 257 was sent so.
}

TEST_F(PushEncoderTest, OtherParametersAreOwedNothing) {
  Push(kGradient);
  encoder_.OnApplied();
  encoder_.Clear();
  EXPECT_EQ(Residual(), Values(3, 0));
  encoder_.OnApplied();
  // Under way, and stored, when the parameters change.
  Push(kGradient);
  encoder_.Clear();
  encoder_.OnDropped();
  EXPECT_EQ(Residual(), Values(3, 0));
  encoder_.OnApplied();
  Push(kGradient);
  encoder_.OnStored();
  encoder_.Clear();
  encoder_.Settle(/*chosen_step=*/0);
  EXPECT_EQ(Residual(), Values(3, 0));
}

TEST_F(PushEncoderTest, WithoutErrorFeedbackNothingIsOwed) {
  PushEncoder plain(codec_, /*error_feedback=*/false);
  const std::vector<float> values(36, kGradient);
  model_.tensors.resize(1);
  model_.tensors[0].set_shape(0, 36);
  model_.plan =
      PlanTransfer(model_.tensors, {{{0, 0, 36}}}, {kMaxPartBytes}).value();
  const std::vector<TensorView> views = {ViewOf(absl::MakeConstSpan(values))};
  for (int step = 1; step <= 3; ++step) {
    const auto encoded = plain.Begin(step, model_, views);
    float first;
    codec_->Decode(plain.Part(encoded.get(), 0, 0).data, 1, &first);
    EXPECT_EQ(first, kSent);
    plain.OnDropped();
  }
}

TEST_F(PushEncoderTest, BytesThatAreHeldDoNotChange) {
  std::vector<TensorView> views;
  for (const std::vector<float>& gradient : gradients_) {
    views.push_back(ViewOf(absl::MakeConstSpan(gradient)));
  }
  auto held = encoder_.Begin(1, model_, views);
  const TensorView part = encoder_.Part(held.get(), 0, 0);
  const char* const place = part.data;
  const std::string bytes(place, part.size_bytes);
  encoder_.OnApplied();
  const auto next = encoder_.Begin(2, model_, views);
  EXPECT_NE(encoder_.Part(next.get(), 0, 0).data, place);
  EXPECT_EQ(std::string(place, bytes.size()), bytes);
}

// So a push may begin before its gradients are computed, and placed.
TEST_F(PushEncoderTest, AGradientIsReadWhenItsPartIsFirstAskedFor) {
  std::vector<TensorView> views;
  for (const std::vector<float>& gradient : gradients_) {
    views.push_back(ViewOf(absl::MakeConstSpan(gradient)));
  }
  const auto push = encoder_.Begin(1, model_, views);
  const auto first_of = [&](int shard) {
    float first;
    codec_->Decode(encoder_.Part(push.get(), shard, 0).data, 1, &first);
    return first;
  };
  gradients_[0].assign(gradients_[0].size(), 2);
  EXPECT_EQ(first_of(0), 2);
  gradients_[0].assign(gradients_[0].size(), 3);
  gradients_[2].assign(gradients_[2].size(), 4);
  EXPECT_EQ(first_of(0), 2) << "sent again, it has the same bytes";
  EXPECT_EQ(first_of(1), 4);
}

}  // namespace
}  // namespace muster
