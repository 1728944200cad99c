#include "common/shared_memory/slot_message.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/parameter_service.pb.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

TEST(SlotMessageTest, AFrameGoesThroughASlot) {
  Frame<PushPart> sent;
  sent.header.set_step(7);
  sent.data.Append("gradient ");
  sent.data.Append(absl::MakeCordFromExternal("of two pieces", [] {}));
  const SlotMessage message = ToSlotMessage(sent);
  ASSERT_TRUE(FitsSlot(message.fields.size(), message.data.size()));
  std::vector<char> segment(kSegmentBytes);
  WriteSlot(message, segment.data(), 3);

  SlotMessage there;
  there.fields.assign(FieldsOf(segment.data(), 3), message.fields.size());
  there.data.Append(
      absl::string_view(DataOf(segment.data(), 3), message.data.size()));
  Frame<PushPart> received;
  ASSERT_THAT(ParseSlotMessage(there, &received), IsOk());
  EXPECT_EQ(received.header.step(), 7);
  EXPECT_EQ(received.data, "gradient of two pieces");
}

// Whether WriteSlotAndLook has seen finite values in these chunks.
bool IsSeenFinite(const std::vector<absl::string_view>& chunks) {
  SlotMessage message;
  for (const absl::string_view chunk : chunks) {
    message.data.Append(absl::MakeCordFromExternal(chunk, [] {}));
  }
  std::vector<char> segment(kSegmentBytes);
  return WriteSlotAndLook(message, segment.data(), 0);
}

TEST(SlotMessageTest, LooksForNonFiniteValuesOnTheWay) {
  std::vector<float> values(1000, -3e38f);
  const absl::string_view bytes(reinterpret_cast<const char*>(values.data()),
                                values.size() * sizeof(float));
  const std::vector<absl::string_view> pieces = {bytes.substr(0, 400),
                                                 bytes.substr(400)};
  EXPECT_TRUE(IsSeenFinite({bytes}));
  EXPECT_TRUE(IsSeenFinite(pieces));
  for (const size_t at : {0, 99, 100, 999}) {
    values[at] = std::numeric_limits<float>::infinity();
    EXPECT_FALSE(IsSeenFinite({bytes})) << at;
    EXPECT_FALSE(IsSeenFinite(pieces)) << at;
    values[at] = 1;
  }
  // A copy lies anywhere.
  const std::string shifted = absl::StrCat("x", bytes.substr(0, 100));
  EXPECT_TRUE(IsSeenFinite({absl::string_view(shifted).substr(1), bytes}));
  values[50] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(IsSeenFinite({absl::string_view(shifted).substr(1), bytes}));
  values[50] = 1;
  // Chunks that cut a value are not looked at.
  EXPECT_FALSE(IsSeenFinite({bytes.substr(0, 401), bytes.substr(401)}));
}

TEST(SlotMessageTest, WhatLiesInTheSlotStaysThere) {
  std::vector<char> segment(kSegmentBytes, 'v');
  SlotMessage message;
  message.data = absl::MakeCordFromExternal(
      absl::string_view(DataOf(segment.data(), 0), 4096), [] {});
  WriteSlot(message, segment.data(), 0);
  EXPECT_EQ(std::vector<char>(kSegmentBytes, 'v'), segment);
}

TEST(SlotMessageTest, TensorBytesLieOnAPageOfTheirOwn) {
  std::vector<char> segment(kSegmentBytes);
  for (uint32_t slot = 0; slot < kNumSlots; ++slot) {
    EXPECT_EQ((DataOf(segment.data(), slot) - segment.data()) % 4096, 0);
  }
}

TEST(SlotMessageTest, RefusesWhatIsNoMessage) {
  Frame<PushPart> frame;
  EXPECT_THAT(
      ParseSlotMessage({std::string(10, '\xff'), {}}, &frame),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("PushPart")));
}

TEST(SlotMessageTest, RefusesTensorsWhereNoneBelong) {
  PullRequest request;
  EXPECT_THAT(ParseSlotMessage({"", absl::Cord("x")}, &request),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("PullRequest carries tensors")));
}

TEST(SlotMessageTest, KnowsWhatASlotHolds) {
  EXPECT_TRUE(FitsSlot(kSlotFieldsBytes, kSlotDataBytes));
  EXPECT_FALSE(FitsSlot(kSlotFieldsBytes + 1, 0));
  EXPECT_FALSE(FitsSlot(0, kSlotDataBytes + 1));
}

}  // namespace
}  // namespace muster
