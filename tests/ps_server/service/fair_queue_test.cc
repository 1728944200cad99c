#include "ps_server/service/fair_queue.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kMb = int64_t{1} << 20;

class FairQueueTest : public testing::Test {
 protected:
  void Push(const std::string& space, int64_t bytes, const std::string& name) {
    queue_.Push(space, bytes, [this, name] { ran_.push_back(name); });
  }
  void RunAll() {
    while (const FairQueue::Task task = queue_.Pop()) task();
  }

  FairQueue queue_;
  std::vector<std::string> ran_;
};

TEST_F(FairQueueTest, KeepsTheOrderOfANamespace) {
  for (const char* name : {"1", "2", "3"}) Push("a", kMb, name);
  RunAll();
  EXPECT_THAT(ran_, ElementsAre("1", "2", "3"));
}

TEST_F(FairQueueTest, GivesTurnsByBytes) {
  for (const char* name : {"a1", "a2", "a3"}) Push("a", 2 * kMb, name);
  for (const char* name : {"b1", "b2", "b3", "b4"}) Push("b", kMb, name);
  RunAll();
  EXPECT_THAT(ran_, ElementsAre("a1", "b1", "b2", "a2", "b3", "b4", "a3"));
}

TEST_F(FairQueueTest, WhoComesLaterDoesNotMakeUpForIt) {
  for (int i = 0; i < 8; ++i) Push("a", kMb, "a");
  for (int i = 0; i < 4; ++i) queue_.Pop()();
  for (int i = 0; i < 4; ++i) Push("b", kMb, "b");
  ran_.clear();
  RunAll();
  EXPECT_THAT(ran_, ElementsAre("b", "a", "b", "a", "b", "a", "b", "a"));
}

TEST_F(FairQueueTest, TakesOneOut) {
  const uint64_t number = queue_.Push("a", 1, [] { FAIL(); });
  EXPECT_TRUE(queue_.Remove("a", number));
  EXPECT_FALSE(queue_.Remove("a", number));
  EXPECT_EQ(queue_.Pop(), nullptr);
}

// One worker against eight, each with one part under way, which it sends anew
// when it is answered: in virtual time, a part at a time.
TEST_F(FairQueueTest, OneBusyWorkerHasAsManyBytesAsEightOfAnotherNamespace) {
  for (const int64_t small : {kMb, kMb / 16}) {
    FairQueue queue;
    std::map<std::string, int64_t> applied;
    std::function<void(const std::string&, int64_t)> send =
        [&](const std::string& space, int64_t bytes) {
          queue.Push(space, bytes, [&, space, bytes] {
            applied[space] += bytes;
            send(space, bytes);
          });
        };
    send("one", small);
    for (int i = 0; i < 8; ++i) send("eight", kMb);
    for (int i = 0; i < 4000; ++i) queue.Pop()();
    const auto total = static_cast<double>(applied["one"] + applied["eight"]);
    for (const auto& [space, bytes] : applied) {
      EXPECT_GE(static_cast<double>(bytes) / total, 0.45)
          << space << " in parts of " << small;
    }
  }
}

}  // namespace
}  // namespace muster
