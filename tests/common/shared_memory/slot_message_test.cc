#include "common/shared_memory/slot_message.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/cord.h"
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
