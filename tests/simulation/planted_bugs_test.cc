// Each planted bug is found within so many seeds.
#include <cstdint>
#include <iostream>
#include <string>

#include "gtest/gtest.h"
#include "tests/simulation/bug.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/simulation.h"

namespace muster {
namespace {

constexpr uint64_t kSeeds = 1000;

struct Planted {
  Bug bug;
  const char* name;
  uint64_t first_seed = 1;
  Tensors tensors = Tensors::kWhole;
};

class PlantedBugsTest : public ::testing::TestWithParam<Planted> {};

TEST_P(PlantedBugsTest, IsFound) {
  const uint64_t first = GetParam().first_seed;
  for (uint64_t seed = first; seed < first + kSeeds; ++seed) {
    const SimulationResult result =
        Simulate(seed, GetParam().bug, GetParam().tensors);
    if (result.violation.empty()) continue;
    std::cout << GetParam().name << " (" << static_cast<int>(GetParam().bug)
              << ") is found by seed " << seed << ": " << result.violation
              << "\n";
    RecordProperty("seed", static_cast<int>(seed));
    return;
  }
  FAIL() << GetParam().name << " is not found by " << kSeeds << " seeds";
}

INSTANTIATE_TEST_SUITE_P(
    All, PlantedBugsTest,
    ::testing::Values(
        Planted{Bug::kNoDuplicateCheck, "NoDuplicateCheck"},
        // None of the first thousand comes to it.
        Planted{Bug::kNoFence, "NoFence", 1001},
        Planted{Bug::kNewIdentityOnRetry, "NewIdentityOnRetry"},
        Planted{Bug::kLostReplyIsSuccess, "LostReplyIsSuccess"},
        Planted{Bug::kMixedEpochs, "MixedEpochs"},
        Planted{Bug::kRestartUnnoticed, "RestartUnnoticed"},
        Planted{Bug::kCommitBeforeSeal, "CommitBeforeSeal"},
        Planted{Bug::kNoFolderSync, "NoFolderSync"},
        Planted{Bug::kNoFileSync, "NoFileSync"},
        Planted{Bug::kStepCountedTwice, "StepCountedTwice"},
        Planted{Bug::kAbandonedStepCounted, "AbandonedStepCounted"},
        Planted{Bug::kTornCut, "TornCut"},
        Planted{Bug::kForgetsCheckpoints, "ForgetsCheckpoints"},
        Planted{Bug::kLockIgnored, "LockIgnored"},
        Planted{Bug::kMarksNotSaved, "MarksNotSaved"},
        Planted{Bug::kLeaseIgnored, "LeaseIgnored"},
        Planted{Bug::kLateApplied, "LateApplied"},
        Planted{Bug::kCountedTwice, "CountedTwice"},
        Planted{Bug::kGoesOnWithoutTheLost, "GoesOnWithoutTheLost",
                kAllReduceSeeds},
        Planted{Bug::kBlockMisplaced, "BlockMisplaced", 1, Tensors::kCut},
        Planted{Bug::kPiecesNotRestored, "PiecesNotRestored", 1, Tensors::kCut},
        Planted{Bug::kOlderPushAgain, "OlderPushAgain"},
        Planted{Bug::kBoundExceeded, "BoundExceeded"},
        Planted{Bug::kKeepsTooFew, "KeepsTooFew"},
        Planted{Bug::kTakeoverUnconfirmed, "TakeoverUnconfirmed"},
        Planted{Bug::kStateNotRestored, "StateNotRestored"},
        Planted{Bug::kUnansweredPushGivenUp, "UnansweredPushGivenUp"},
        Planted{Bug::kTurnLostAtClose, "TurnLostAtClose"},
        Planted{Bug::kLaterTurnFirst, "LaterTurnFirst"},
        Planted{Bug::kTurnsAtOnce, "TurnsAtOnce"},
        Planted{Bug::kCountedBeforeTheCuts, "CountedBeforeTheCuts"},
        Planted{Bug::kRowsGivenTwice, "RowsGivenTwice"},
        Planted{Bug::kRowsLostOnTakeover, "RowsLostOnTakeover"},
        Planted{Bug::kDoneBeforeCounted, "DoneBeforeCounted"},
        Planted{Bug::kRowsReturnedTwice, "RowsReturnedTwice"},
        Planted{Bug::kPrefetchOutlivesWorker, "PrefetchOutlivesWorker"},
        Planted{Bug::kRestoreForgetsFront, "RestoreForgetsFront"},
        Planted{Bug::kMarksWithoutNamespace, "MarksWithoutNamespace",
                kTwoJobSeeds}),
    [](const ::testing::TestParamInfo<Planted>& info) {
      return std::string(info.param.name);
    });

}  // namespace
}  // namespace muster
