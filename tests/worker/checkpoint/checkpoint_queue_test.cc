#include "worker/checkpoint/checkpoint_queue.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Settles all that waits; the steps in the order in which they came up.
std::vector<int64_t> SettleAll(CheckpointQueue* queue) {
  std::vector<int64_t> steps;
  while (const auto next = queue->Next()) {
    steps.push_back(next->global_step);
    queue->Settle(*next);
  }
  return steps;
}

TEST(CheckpointQueueTest, GivesEachOnceTheOldestFirst) {
  CheckpointQueue queue;
  EXPECT_FALSE(queue.Next().has_value());
  queue.Update({{30, 3}, {10, 1}, {20, 2}});
  EXPECT_THAT(SettleAll(&queue), ElementsAre(10, 20, 30));
  queue.Update({{30, 3}, {40, 4}, {20, 2}});
  EXPECT_THAT(SettleAll(&queue), ElementsAre(40));
  queue.Update({{30, 3}, {40, 4}});
  EXPECT_THAT(SettleAll(&queue), IsEmpty());
}

TEST(CheckpointQueueTest, NamesOnlyThoseThatWentUnsettled) {
  CheckpointQueue queue;
  EXPECT_THAT(queue.Update({{10, 1}, {20, 2}, {30, 3}}), IsEmpty());
  queue.Settle({10, 1});
  EXPECT_THAT(queue.Update({{30, 3}}), ElementsAre(20));
  EXPECT_THAT(queue.Update({{30, 3}}), IsEmpty());
  EXPECT_THAT(SettleAll(&queue), ElementsAre(30));
}

TEST(CheckpointQueueTest, AnotherCheckpointOfASettledStepWaitsAgain) {
  CheckpointQueue queue;
  queue.Update({{10, 1}, {20, 2}});
  SettleAll(&queue);
  queue.Update({{10, 1}, {20, 7}});
  EXPECT_THAT(SettleAll(&queue), ElementsAre(20));
}

TEST(CheckpointQueueTest, OneThatComesBackWaitsAgain) {
  CheckpointQueue queue;
  queue.Update({{10, 1}});
  SettleAll(&queue);
  queue.Update({});
  queue.Update({{10, 1}});
  EXPECT_THAT(SettleAll(&queue), ElementsAre(10));
}

}  // namespace
}  // namespace muster
