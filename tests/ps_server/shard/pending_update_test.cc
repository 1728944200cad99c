#include "ps_server/shard/pending_update.h"

#include <map>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ps_server/shard/shard_requests.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

constexpr double kRateFactor = 0.25;

// Remembers the first value of each block's mean, and the slices.
class FakeApplier : public PartApplier {
 public:
  explicit FakeApplier(const TensorTable& tensors) : tensors_(tensors) {}

  bool Apply(const PushedPart&) override {
    ADD_FAILURE();
    return false;
  }
  void ApplyRows(const CheckedRows&, double) override { ADD_FAILURE(); }
  void CountUpdate() override { FAIL(); }
  void ApplyToBlocks(absl::Span<const CheckedSlice> slices, double rate_factor,
                     BlockGradient gradient) override {
    EXPECT_EQ(rate_factor, kRateFactor);
    for (const CheckedSlice& slice : slices) {
      runs.emplace_back(slice.offset, slice.length);
      const int64_t end = NumBlocks(slice.offset + slice.length);
      for (int64_t i = slice.offset / kBlockElements; i < end; ++i) {
        std::vector<float> mean(tensors_[slice.tensor].BlockElements(i));
        gradient(slice.tensor, i, absl::MakeSpan(mean));
        means.emplace_back(std::pair(slice.tensor, i), mean.back());
      }
    }
  }

  std::vector<std::pair<int64_t, int64_t>> runs;
  std::vector<std::pair<std::pair<int, int64_t>, float>> means;

 private:
  const TensorTable& tensors_;
};

// "weights" has three blocks, "frozen" one, "bias" one of two elements.
class PendingUpdateTest : public testing::Test {
 protected:
  static constexpr int64_t kWeights = 2 * kBlockElements + 5;

  PendingUpdateTest() : tensors_(MakeTable()), applier_(tensors_) {}

  static TensorTable MakeTable() {
    google::protobuf::RepeatedPtrField<TensorDef> defs;
    *defs.Add() = MakeTensor("weights", {kWeights});
    *defs.Add() = MakeTensor("frozen", {4}, FROZEN);
    *defs.Add() = MakeTensor("bias", {2});
    return *TensorTable::Create(defs, {});
  }

  // One part with all values; they count up by one a block.
  StoredGradient MakeGradient(float first) const {
    std::vector<float> values(kWeights + 2, first);
    std::fill(values.begin() + kBlockElements, values.end(), first + 1);
    std::fill(values.begin() + 2 * kBlockElements, values.end(), first + 2);
    std::fill(values.begin() + kWeights, values.end(), first + 3);
    PushedPart part;
    part.sender = MakeSender(1, 1);
    part.step = 1;
    // That of the update is another matter.
    part.rate_factor = 2 * kRateFactor;
    part.slices = {{0, 0, kWeights}, {2, 0, 2}};
    part.data = BytesOf(values);
    const BlockNumbers numbers(tensors_);
    StoredGradient gradient(part, numbers.total());
    gradient.Add(std::move(part), numbers, tensors_);
    return gradient;
  }

  PendingUpdate MakeUpdate() const {
    std::vector<StoredGradient> gradients;
    gradients.push_back(MakeGradient(10));
    gradients.push_back(MakeGradient(20));
    return PendingUpdate(std::move(gradients), kRateFactor, tensors_);
  }

  TensorTable tensors_;
  FakeApplier applier_;
};

TEST_F(PendingUpdateTest, ThereIsNoneAtFirst) {
  PendingUpdate none;
  EXPECT_TRUE(none.is_made());
  none.MakeAll(tensors_, applier_);
  none.MakeIn({{0, 0, 1}}, tensors_, applier_);
  EXPECT_TRUE(applier_.runs.empty());
}

TEST_F(PendingUpdateTest, IsMadeInTheBlocksThatAreReadAndOnceInEach) {
  PendingUpdate update = MakeUpdate();
  // The last element of block 0 and the first one of block 1.
  update.MakeIn({{0, kBlockElements - 1, 2}}, tensors_, applier_);
  EXPECT_THAT(applier_.means,
              ElementsAre(Pair(Pair(0, 0), 15), Pair(Pair(0, 1), 16)));
  EXPECT_THAT(applier_.runs, ElementsAre(Pair(0, 2 * kBlockElements)));
  applier_.means.clear();
  update.MakeIn({{0, 0, kWeights}, {1, 0, 4}}, tensors_, applier_);
  EXPECT_THAT(applier_.means, ElementsAre(Pair(Pair(0, 2), 17)));
  EXPECT_FALSE(update.is_made());
  applier_.means.clear();
  update.MakeAll(tensors_, applier_);
  EXPECT_THAT(applier_.means, ElementsAre(Pair(Pair(2, 0), 18)));
  EXPECT_TRUE(update.is_made());
  update.MakeAll(tensors_, applier_);
  EXPECT_EQ(applier_.means.size(), 1);
}

}  // namespace
}  // namespace muster
