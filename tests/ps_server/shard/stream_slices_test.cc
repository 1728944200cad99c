#include "ps_server/shard/stream_slices.h"

#include <memory>
#include <string>
#include <vector>

#include "common/optimizer/update_rule.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps_server/block/shard_snapshot.h"
#include "ps_server/block/tensor_table.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int64_t kElements = kBlockElements + 3;

// "w" of two blocks with momentum, and the state tensor "mean".
class StreamSlicesTest : public testing::Test {
 protected:
  StreamSlicesTest() {
    DefineRequest define = MakeDefine(
        MakeSender(0, 1),
        {MakeTensor("w", {kElements}), MakeTensor("mean", {2}, STATE)});
    define.mutable_optimizer()->set_name("momentum");
    rule_ = CreateUpdateRule(define.optimizer()).value();
    tensors_ = TensorTable::Create(define.tensors(), rule_->slots()).value();
  }

  absl::StatusOr<StreamSlices> Find(const std::string& slot,
                                    const TensorSlice& slice) const {
    Slices slices;
    *slices.Add() = slice;
    return StreamSlices::Create("load", slot, slices,
                                {"momentum", rule_->slots(), tensors_});
  }

  template <typename T>
  std::vector<T> Read(const StreamSlices& stream) const {
    std::vector<T> values(stream.bytes() / sizeof(T));
    stream.Read(snapshot_, tensors_, reinterpret_cast<char*>(values.data()));
    return values;
  }

  std::unique_ptr<UpdateRule> rule_;
  TensorTable tensors_;
  ShardSnapshot snapshot_;
};

TEST_F(StreamSlicesTest, LoadsAndReadsASlotOverBlocks) {
  const auto stream = Find("momentum", MakeSlice("w", 1, kElements - 1));
  ASSERT_THAT(stream, IsOk());
  EXPECT_FALSE(stream->is_parameter());
  const absl::Cord data = BytesOf(std::vector<float>(kElements - 1, 4));
  ASSERT_THAT(stream->CheckData("load", data), IsOk());
  stream->Load(data, tensors_);
  snapshot_.Begin(1, /*max_bytes=*/0);
  EXPECT_THAT(Read<float>(*stream), Each(4.0F));
  const auto whole = Find("", MakeSlice("w", 0, kElements));
  ASSERT_THAT(whole, IsOk());
  EXPECT_TRUE(whole->is_parameter());
  EXPECT_THAT(Read<float>(*whole), Each(0.0F)) << "another stream";
}

TEST_F(StreamSlicesTest, LoadsAndReadsCountsOfBlocks) {
  const auto stream = Find("t", MakeSlice("w", 0, 2));
  ASSERT_THAT(stream, IsOk());
  EXPECT_TRUE(stream->is_counts());
  EXPECT_THAT(stream->CheckData("load", BytesOf<int64_t>({1, -1})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("slot 't' has a count")));
  EXPECT_THAT(stream->CheckData("load", BytesOf<int64_t>({1})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("the frame has 8")));
  stream->Load(BytesOf<int64_t>({7, 8}), tensors_);
  snapshot_.Begin(1, /*max_bytes=*/0);
  EXPECT_THAT(Read<int64_t>(*stream), ElementsAre(7, 8));
}

TEST_F(StreamSlicesTest, RefusesAStreamThatIsNotThere) {
  EXPECT_THAT(
      Find("m", MakeSlice("w", 0, 1)),
      StatusIs(absl::StatusCode::kNotFound,
               AllOf(StartsWith("load: optimizer 'momentum' has no slot 'm'"),
                     HasSubstr("it has 'momentum' and 't'"))));
  EXPECT_THAT(Find("momentum", MakeSlice("mean", 0, 1)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("'mean' is a state tensor")));
}

}  // namespace
}  // namespace muster
