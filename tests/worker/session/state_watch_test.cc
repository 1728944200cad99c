#include "worker/session/state_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/testing/fake_clock.h"
#include "tests/worker/session/fake_coordination.h"

namespace muster {
namespace {

using ::testing::ElementsAre;

TEST(StateWatchTest, GoesOnAfterEachStateAndStopsAtAnError) {
  FakeCoordination coordination(1);
  FakeClock clock;
  std::vector<JobPhase> phases;
  int errors = 0;
  StateWatch watch(&coordination, &clock, Sender(),
                   [&](absl::StatusOr<JobState> state) {
                     if (!state.ok()) {
                       ++errors;
                     } else {
                       phases.push_back(state->phase());
                     }
                   });
  watch.Start(0);
  coordination.SetPhase(RUNNING);
  coordination.SetPhase(STOPPING);
  EXPECT_THAT(phases, ElementsAre(INITIAL, RUNNING, STOPPING));
  coordination.FailWatch(absl::UnavailableError("gone"));
  EXPECT_EQ(errors, 1);
  const int watches = coordination.watches();
  coordination.SetPhase(DONE);
  EXPECT_EQ(coordination.watches(), watches);
}

TEST(StateWatchTest, DropsAnAnswerThatComesAfterItsEnd) {
  FakeCoordination coordination(1);
  FakeClock clock;
  int calls = 0;
  {
    StateWatch watch(&coordination, &clock, Sender(),
                     [&](absl::StatusOr<JobState>) { ++calls; });
    watch.Start(1);
  }
  coordination.SetPhase(RUNNING);
  EXPECT_EQ(calls, 0);
}

}  // namespace
}  // namespace muster
