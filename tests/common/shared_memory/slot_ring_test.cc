#include "common/shared_memory/slot_ring.h"

#include <memory>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

class SlotRingTest : public testing::Test {
 protected:
  const std::unique_ptr<SharedRing> ring_ = std::make_unique<SharedRing>();
  RingWriter writer_{ring_.get()};
  RingReader reader_{ring_.get()};
};

TEST_F(SlotRingTest, IsEmptyAtTheStart) {
  EXPECT_FALSE(reader_.HasEntry());
  ASSERT_THAT(reader_.Take(), IsOk());
  EXPECT_FALSE(reader_.Take()->has_value());
}

TEST_F(SlotRingTest, HandsOverInOrder) {
  for (uint32_t i = 0; i < 5 * kNumSlots; ++i) {
    writer_.Publish({i, i + 1, i + 2, i + 3, i + 4, i + 5});
    if (i % 3 != 2) continue;
    for (uint32_t taken = i - 2; taken <= i; ++taken) {
      ASSERT_TRUE(reader_.HasEntry());
      const absl::StatusOr<std::optional<RingEntry>> entry = reader_.Take();
      ASSERT_THAT(entry, IsOk());
      ASSERT_TRUE(entry->has_value());
      EXPECT_EQ((*entry)->slot, taken);
      EXPECT_EQ((*entry)->kind, taken + 1);
      EXPECT_EQ((*entry)->fields_bytes, taken + 2);
      EXPECT_EQ((*entry)->data_bytes, taken + 3);
      EXPECT_EQ((*entry)->timeout_ms, taken + 4);
      EXPECT_EQ((*entry)->is_finite, taken + 5);
    }
  }
}

TEST_F(SlotRingTest, TakesAFullRing) {
  for (uint32_t i = 0; i < kNumSlots; ++i) writer_.Publish({i});
  for (uint32_t i = 0; i < kNumSlots; ++i) {
    EXPECT_EQ((*reader_.Take())->slot, i);
  }
  EXPECT_FALSE(reader_.HasEntry());
}

TEST_F(SlotRingTest, RefusesACountThatCannotBe) {
  for (const uint32_t count : {kNumSlots + 1, 1u << 31, UINT32_MAX}) {
    ring_->published = count;
    EXPECT_THAT(reader_.Take(), StatusIs(absl::StatusCode::kInvalidArgument,
                                         testing::HasSubstr("there are 8")))
        << count;
  }
}

TEST_F(SlotRingTest, WantsABellOnlyWhileTheReaderSleeps) {
  EXPECT_FALSE(writer_.Publish({0}));
  reader_.StartSleep();
  EXPECT_TRUE(writer_.Publish({1}));
  reader_.EndSleep();
  EXPECT_FALSE(writer_.Publish({2}));
}

// A published entry is whole: the slots' contents come before it.
TEST_F(SlotRingTest, AnEntryBringsWhatWasWrittenBefore) {
  constexpr uint32_t kRounds = 20000;
  uint32_t slots[kNumSlots] = {};
  std::atomic<uint32_t> taken = 0;
  std::thread reader([&] {
    while (taken < kRounds) {
      if (!reader_.HasEntry()) {
        std::this_thread::yield();
        continue;
      }
      const RingEntry entry = **reader_.Take();
      ASSERT_EQ(slots[entry.slot], entry.fields_bytes);
      ++taken;
    }
  });
  for (uint32_t i = 1; i <= kRounds; ++i) {
    while (i - taken > kNumSlots) std::this_thread::yield();
    slots[i % kNumSlots] = i;
    writer_.Publish({i % kNumSlots, 0, i, 0});
  }
  reader.join();
}

}  // namespace
}  // namespace muster
