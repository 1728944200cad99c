// A shard that holds blocks 1 and 3 of a tensor of four and a bit, and a whole
// small one. Every offset is one in the whole tensor.
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps_server/shard/parameter_shard.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kBlock = kBlockElements;
constexpr int64_t kElements = 4 * kBlock + 5;

TensorDef Piece(int64_t begin, int64_t length, TensorKind kind = TRAINABLE) {
  TensorDef def = MakeTensor("w", {kElements}, kind);
  def.mutable_extent()->set_begin(begin);
  def.mutable_extent()->set_length(length);
  return def;
}

ShardOptions TestOptions() {
  ShardOptions options;
  options.incarnation = kPsIncarnation;
  options.max_bytes = 64 << 20;
  return options;
}

class TensorPiecesTest : public testing::Test {
 protected:
  TensorPiecesTest() : shard_(TestOptions()) {
    EXPECT_THAT(shard_.Hello(MakeHello(chief_)), IsOk());
  }

  absl::Status Define(const std::vector<TensorDef>& tensors) {
    return shard_.Define(MakeDefine(chief_, tensors)).status();
  }

  // `value` at each element of the slice.
  absl::Status Load(const TensorSlice& slice, float value) {
    const std::vector<float> values(slice.length(), value);
    return shard_.Load(MakeLoad(chief_, {slice}, BytesOf(values))).status();
  }

  void MakeReady(TensorKind kind = TRAINABLE) {
    ASSERT_THAT(Define({Piece(kBlock, kBlock, kind), MakeTensor("small", {3}),
                        Piece(3 * kBlock, kBlock + 5, kind)}),
                IsOk());
    ASSERT_THAT(Load(MakeSlice("w", kBlock, kBlock), 10), IsOk());
    ASSERT_THAT(Load(MakeSlice("w", 3 * kBlock, kBlock + 5), 30), IsOk());
    ASSERT_THAT(Load(MakeSlice("small", 0, 3), 1), IsOk());
    ASSERT_THAT(shard_.Seal(MakeSeal(chief_)), IsOk());
  }

  std::vector<float> Pull(int64_t offset, int64_t length) {
    const auto reply =
        shard_.Pull(MakePull(chief_, {MakeSlice("w", offset, length)}));
    EXPECT_THAT(reply, IsOk());
    return reply.ok() ? ValuesOf<float>(reply->data) : std::vector<float>();
  }

  // A push of `value` for each element.
  absl::Status Push(int64_t step, const TensorSlice& slice, float value) {
    const std::vector<float> values(slice.length(), value);
    return shard_.Push(MakePush(chief_, step, {slice}, BytesOf(values)))
        .status();
  }

  const Sender chief_ = MakeSender(0, 11);
  ParameterShard shard_;
};

TEST_F(TensorPiecesTest, EachIsFoundByItsPlaceInTheWholeTensor) {
  MakeReady();
  ASSERT_THAT(Push(1, MakeSlice("w", 3 * kBlock, kBlock + 5), -1), IsOk());
  EXPECT_THAT(Pull(kBlock, kBlock), Each(10));
  EXPECT_THAT(Pull(4 * kBlock - 1, 6), Each(31));
  EXPECT_EQ(shard_.State().tensors(), 2);
  EXPECT_EQ(shard_.State().bytes(), (2 * kBlock + 5 + 3) * 4);
}

TEST_F(TensorPiecesTest, CountsOfUpdatesAreOfBlocksOfTheWholeTensor) {
  MakeReady();
  ASSERT_THAT(Push(1, MakeSlice("w", 4 * kBlock, 5), -1), IsOk());
  ASSERT_THAT(Push(2, MakeSlice("w", 3 * kBlock, kBlock + 5), -1), IsOk());
  BeginSnapshotRequest begin;
  *begin.mutable_sender() = chief_;
  *begin.mutable_fence() = MakeFence();
  const auto snapshot = shard_.BeginSnapshot(begin);
  ASSERT_THAT(snapshot, IsOk());
  const auto read = [&](const TensorSlice& slice) {
    return shard_.ReadSnapshot(
        MakeRead(chief_, snapshot->snapshot(), slice, "t"));
  };
  const auto end = read(MakeSlice("w", 3, 2));
  ASSERT_THAT(end, IsOk());
  EXPECT_THAT(ValuesOf<int64_t>(end->data), ElementsAre(1, 2));
  const auto first = read(MakeSlice("w", 1, 1));
  ASSERT_THAT(first, IsOk());
  EXPECT_THAT(ValuesOf<int64_t>(first->data), ElementsAre(0));
  EXPECT_THAT(read(MakeSlice("w", 2, 1)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("shard has of it: [1, 2), [3, 5)")));
}

TEST_F(TensorPiecesTest, SlicesOfOtherPiecesAreRefused) {
  MakeReady();
  const auto is_refused =
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("shard has of it: [65536, 131072), [196608, 262149)"));
  for (const TensorSlice& slice :
       {MakeSlice("w", 0, 1), MakeSlice("w", kBlock - 1, 2),
        MakeSlice("w", 2 * kBlock - 1, 2), MakeSlice("w", 2 * kBlock, kBlock),
        MakeSlice("w", kBlock, 3 * kBlock)}) {
    EXPECT_THAT(shard_.Pull(MakePull(chief_, {slice})), is_refused);
    EXPECT_THAT(Push(1, slice, -1), is_refused);
  }
  EXPECT_THAT(Push(1, MakeSlice("w", kElements, 1), -1),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("not inside its 262149 elements")));
}

TEST_F(TensorPiecesTest, WhatIsNotLoadedIsToldByItsPlaceInTheWholeTensor) {
  ASSERT_THAT(Define({Piece(kBlock, kBlock), Piece(3 * kBlock, kBlock + 5)}),
              IsOk());
  ASSERT_THAT(Load(MakeSlice("w", 3 * kBlock, kBlock + 5), 1), IsOk());
  ASSERT_THAT(Load(MakeSlice("w", kBlock, 7), 1), IsOk());
  EXPECT_THAT(shard_.Seal(MakeSeal(chief_)),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("from element 65543 of 262149")));
}

TEST_F(TensorPiecesTest, WhatIsNotFiniteIsToldByItsPlaceInTheWholeTensor) {
  MakeReady(STATE);
  const float largest = std::numeric_limits<float>::max();
  EXPECT_THAT(Push(1, MakeSlice("w", 4 * kBlock, 5), std::nanf("")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("at element 262144")));
  ASSERT_THAT(Push(1, MakeSlice("w", 4 * kBlock, 5), largest), IsOk());
  EXPECT_THAT(Push(2, MakeSlice("w", 4 * kBlock, 5), largest),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("infinite at element 262144")));
}

TEST_F(TensorPiecesTest, OverlapsAreToldByTheirPlaceInTheWholeTensor) {
  MakeReady();
  EXPECT_THAT(shard_.Pull(MakePull(chief_, {MakeSlice("w", kBlock, 9),
                                            MakeSlice("w", kBlock + 4, 9)})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("overlap at element 65540")));
}

TEST_F(TensorPiecesTest, PiecesThatCannotBeAreRefused) {
  struct Case {
    std::vector<TensorDef> tensors;
    const char* wanted;
  };
  TensorDef frozen = Piece(0, kBlock);
  frozen.set_kind(FROZEN);
  const Case kCases[] = {
      {{Piece(1, kBlock)}, "extent [1, + 65536)"},
      {{Piece(-kBlock, kBlock)}, "extent [-65536, + 65536)"},
      {{Piece(0, kBlock - 1)}, "wanted whole blocks of 65536"},
      {{Piece(4 * kBlock, kBlock)}, "extent [262144, + 65536)"},
      {{Piece(INT64_MAX - kBlock + 1, kBlock)}, "whole blocks"},
      {{Piece(0, INT64_MAX)}, "whole blocks"},
      {{Piece(kBlock, 2 * kBlock), Piece(0, 2 * kBlock)},
       "two pieces have element 65536"},
      {{Piece(kBlock, kBlock), MakeTensor("w", {kElements})},
       "two parameters have this name"},
      {{Piece(kBlock, kBlock), frozen}, "two parameters have this name"},
  };
  for (const Case& c : kCases) {
    EXPECT_THAT(Define(c.tensors), StatusIs(absl::StatusCode::kInvalidArgument,
                                            HasSubstr(c.wanted)));
  }
}

}  // namespace
}  // namespace muster
