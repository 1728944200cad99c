#ifndef TESTS_SIMULATION_BUG_H_
#define TESTS_SIMULATION_BUG_H_

namespace muster {

// A mistake that a simulation is told to make, between production's parts and
// never in them: a simulation that does not find it proves nothing.
enum class Bug {
  kNone,
  // A ps applies a push each time that it comes.
  kNoDuplicateCheck,
  // A ps takes messages of any epoch and for any incarnation of itself.
  kNoFence,
  // A worker sends a push again as another step.
  kNewIdentityOnRetry,
  // A worker takes a push whose answer was lost for applied.
  kLostReplyIsSuccess,
  // Only the shards that have lost their memory are restored.
  kMixedEpochs,
  // A new start of a ps answers as the old one.
  kRestartUnnoticed,
  // The chief commits an epoch before every shard is sealed.
  kCommitBeforeSeal,
  // Folders are not synced.
  kNoFolderSync,
  // Files are not synced.
  kNoFileSync,
  // The coordinator counts a step each time that it is reported.
  kStepCountedTwice,
  // The coordinator counts steps that were given up.
  kAbandonedStepCounted,
  // A snapshot reads the values of now, not those of the cut.
  kTornCut,
  // A chief initializes although there is a checkpoint.
  kForgetsCheckpoints,
  // Two chiefs may use one train_dir.
  kLockIgnored,
  // Checkpoints are without the duplicate marks.
  kMarksNotSaved,
  // The coordinator lets every chief begin and commit epochs.
  kLeaseIgnored,
  // Synchronous replication: a gradient that comes too late is taken for one
  // of the open round.
  kLateApplied,
  // Synchronous replication: shards count a chosen worker twice.
  kCountedTwice,
  // All-reduce: the job goes on without a worker that has left, while its part
  // of the parameters is still there.
  kGoesOnWithoutTheLost,
  // A ps applies a block of a cut tensor at the place of another one.
  kBlockMisplaced,
  // A ps loads no piece of a tensor but its first.
  kPiecesNotRestored,
  // Two jobs: a ps takes a push for one that it has had from the task of the
  // same name in another namespace.
  kMarksWithoutNamespace,
  // A ps applies, in place of a push, the one before it of its worker again.
  kOlderPushAgain,
  // Bounded staleness: workers may go one step further ahead.
  kBoundExceeded,
  // One checkpoint fewer is kept than was asked for.
  kKeepsTooFew,
  // The coordinator lets a start of a task take over that nobody has confirmed.
  kTakeoverUnconfirmed,
  // A ps does not load state tensors.
  kStateNotRestored,
  // A worker whose push gets no answer takes another step in its place, though
  // the epoch goes on.
  kUnansweredPushGivenUp,
  // A request that waits for its turn when a ps is drained is dropped.
  kTurnLostAtClose,
  // A ps carries out the newest of the requests that wait, not the oldest.
  kLaterTurnFirst,
  // A thread of a ps carries out what it asks for while another thread does.
  kTurnsAtOnce,
  // A checkpoint counts the steps that were reported before its cuts, not those
  // that the cuts hold.
  kCountedBeforeTheCuts,
  // ps task 0 gives a worker the rows that another one has.
  kRowsGivenTwice,
  // The rows of a worker that is started anew are lost.
  kRowsLostOnTakeover,
  // A checkpoint has all rows as done that were given out.
  kDoneBeforeCounted,
  // Rows that came back are given out again, and once more.
  kRowsReturnedTwice,
  // A worker trains on the rows that it had prepared, though they are in other
  // hands.
  kPrefetchOutlivesWorker,
  // After a restore rows are given out from the beginning.
  kRestoreForgetsFront,
};

}  // namespace muster

#endif  // TESTS_SIMULATION_BUG_H_
