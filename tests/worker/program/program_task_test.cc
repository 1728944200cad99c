// Whole jobs of programs in this process, with ps tasks of their own.
#include "worker/program/program_task.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/checkpoint/posix_file_system.h"
#include "common/cluster/cluster_spec.h"
#include "common/config/json.h"
#include "common/config/text_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/summary.pb.h"
#include "tests/common/summary/read_events.h"
#include "tests/testing/forwarding_parameter_link.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/task/local_ps_tasks.h"
#include "worker/input/data_order.h"

namespace muster {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kTraining[] = R"pb(
  optimizer {
    name: "sgd"
    attr { name: "learning_rate" f: 0.25 }
    schedule { name: "constant" }
  }
  placement {
    strategy: "round_robin"
    partition { auto {} }
  }
  checkpoint { keep: 5 max_save_seconds: 300 }
  non_finite { max_refusals: 3 }
  summary { every_steps: 100 }
  seed: 3
)pb";

// A program that fits y = w x to one row (1, target), and what it has seen.
struct Program {
  float target = 1;
  std::vector<float> w = {0};

  std::vector<float> seen;
  std::vector<int64_t> rows;
  int exit_code = -1;
  bool has_values = false;
  absl::Status failure;
  // Of each step, where nobody deals rows.
  int64_t examples = 1;
  // Whether it gives its gradients.
  bool gives = true;
  // Called with each offer, before the gradient is given.
  std::function<void(ProgramTask&, const ProgramSteps::Offer&)> on_step =
      [](ProgramTask&, const ProgramSteps::Offer&) {};
};

// Training steps of w -= 0.25 (w - target); exact in float.
std::vector<float> SgdByHand(float w, float target, int steps) {
  std::vector<float> values;
  for (int i = 0; i < steps; ++i) {
    values.push_back(w);
    w -= 0.25f * (w - target);
  }
  return values;
}

class ProgramTaskTest : public testing::Test {
 protected:
  static std::string NewTrainDir() {
    std::string path = testing::TempDir() + "/programXXXXXX";
    return mkdtemp(path.data());
  }
  static std::string ReadAll(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream bytes;
    bytes << file.rdbuf();
    return bytes.str();
  }

  // A job of these tasks, whose training has `more`.
  void StartPs(int num_workers, absl::string_view more) {
    num_workers_ = num_workers;
    ps_ = std::make_unique<LocalPsTasks>(/*num_ps=*/1, num_workers);
    training_ = absl::StrCat(kTraining, " ", more);
  }

  ProgramOptions Options(int index, const Program& program) {
    ProgramOptions options;
    WorkerOptions& worker = options.worker;
    EXPECT_THAT(ParseTextProto(training_, "test", &worker.training), IsOk());
    worker.cluster = Cluster();
    worker.self.set_job("worker");
    worker.self.set_index(index);
    worker.incarnation = ++incarnation_;
    worker.clock = &clock_;
    worker.start_time = clock_.Now();
    worker.reporter = lines_.reporter();
    if (index == 0) worker.train_dir = train_dir_;
    ProgramTensor& tensor = options.tensors.emplace_back();
    tensor.set_name("w");
    tensor.add_shape(static_cast<int64_t>(program.w.size()));
    options.make_links = [this](const WorkerOptions&) {
      return ps_->MakeLinks();
    };
    return options;
  }

  // Trains until the job is over.
  void Train(const ProgramOptions& options, Program* program) {
    ProgramTask task(options, {absl::MakeSpan(program->w)});
    std::vector<float> gradient(program->w.size());
    ProgramSteps::Offer offer;
    for (;;) {
      const auto state = task.steps().Await(absl::Seconds(1), &offer);
      if (state == ProgramSteps::State::kOver) break;
      if (state == ProgramSteps::State::kWaiting) continue;
      program->seen.push_back(program->w[0]);
      int64_t epoch = -1;
      for (const int64_t row : task.RowsOf(offer.leases.front(), &epoch)) {
        program->rows.push_back(row);
      }
      program->on_step(task, offer);
      if (!program->gives) continue;
      const float error = program->w[0] - program->target;
      gradient[0] = error;
      ProgramSteps::Figures figures;
      figures.loss = error * error / 2;
      figures.examples = std::max(options.step_rows, program->examples);
      EXPECT_THAT(task.steps().Give({absl::MakeSpan(gradient)}, figures),
                  IsOk());
    }
    program->exit_code = task.Close();
    program->has_values = task.steps().has_values();
    program->failure = task.failure();
  }
  void Train(int index, Program* program) {
    Train(Options(index, *program), program);
  }

  std::string train_dir_;
  ReportedLines lines_;

 private:
  ClusterSpec Cluster() const {
    ClusterDef def;
    for (const std::string job : {"ps", "worker"}) {
      JobDef* const tasks = def.add_job();
      tasks->set_name(job);
      for (int i = 0; i < (job == "ps" ? 1 : num_workers_); ++i) {
        (*tasks->mutable_tasks())[i] =
            absl::StrCat("127.0.0.1:", job == "ps" ? 1 : 11, i);
      }
    }
    const auto cluster = ClusterSpec::Create(def);
    EXPECT_THAT(cluster, IsOk());
    return *cluster;
  }

  const MonotonicClock clock_{};
  std::unique_ptr<LocalPsTasks> ps_;
  int num_workers_ = 0;
  std::string training_;
  uint64_t incarnation_ = 0;
};

TEST_F(ProgramTaskTest, OneWorker_TrainsAsSgdByHand) {
  train_dir_ = NewTrainDir();
  StartPs(1, "replication { async {} } stop { steps: 8 }");
  Program program;
  program.w = {5};
  Train(0, &program);
  EXPECT_EQ(program.exit_code, 0);
  EXPECT_THAT(program.failure, IsOk());
  EXPECT_EQ(program.seen, SgdByHand(5, 1, 8));
  EXPECT_THAT(lines_.errors(), IsEmpty());
  const auto result = ParseJson(ReadAll(train_dir_ + "/result.json"));
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->Find("global_step")->text, "8");
  EXPECT_EQ(result->Find("stop_reason")->text, "steps");
  EXPECT_EQ(result->Find("device")->text, "program");
  EXPECT_EQ(result->Find("examples")->text, "8");
}

TEST_F(ProgramTaskTest, RowsThatNobodyDeals_CountAsTheProgramSays) {
  for (const std::string mode : {"async {}", "sync {}"}) {
    train_dir_ = NewTrainDir();
    StartPs(1, "replication { " + mode + " } stop { steps: 3 }");
    Program program;
    program.w = {5};
    program.examples = 64;
    Train(0, &program);
    EXPECT_THAT(program.failure, IsOk());
    const auto result = ParseJson(ReadAll(train_dir_ + "/result.json"));
    ASSERT_THAT(result, IsOk());
    EXPECT_EQ(result->Find("examples")->text, "192") << mode;
  }
}

TEST_F(ProgramTaskTest, TwoSyncWorkers_TrainAsOneWithTheMean) {
  StartPs(2, "replication { sync {} } stop { steps: 6 }");
  Program first;
  Program second;
  second.target = 3;
  std::thread other([&] { Train(1, &second); });
  Train(0, &first);
  other.join();
  EXPECT_EQ(first.exit_code, 0);
  EXPECT_EQ(second.exit_code, 0);
  EXPECT_EQ(first.seen, SgdByHand(0, 2, 6));
  EXPECT_EQ(second.seen, SgdByHand(0, 2, 6));
}

// The values of the newest checkpoint.
std::vector<float> SavedValues(const std::string& train_dir) {
  PosixFileSystem file_system;
  const auto newest = CheckpointReader::OpenNewest(&file_system, train_dir);
  EXPECT_THAT(newest, IsOk());
  std::vector<float> w = {-1000};
  EXPECT_THAT(newest->reader->Read("w", "", 0, 1, w.data()), IsOk());
  return w;
}

// Fails pulls once `fails` says so.
class LinkWithoutPulls : public ForwardingParameterLink {
 public:
  LinkWithoutPulls(std::unique_ptr<ParameterLink> link,
                   const std::atomic<bool>* fails)
      : ForwardingParameterLink(link.get()),
        link_(std::move(link)),
        fails_(*fails) {}
  void PullTo(std::shared_ptr<ValuePlace> place, const PullRequest& request,
              absl::Time deadline,
              ReplyCallback<Frame<PullReply>> done) override {
    if (fails_) return done(absl::InternalError("no pulls"));
    ForwardingParameterLink::PullTo(std::move(place), request, deadline,
                                    std::move(done));
  }

 private:
  const std::unique_ptr<ParameterLink> link_;
  const std::atomic<bool>& fails_;
};

class LastValuesTest : public ProgramTaskTest,
                       public testing::WithParamInterface<const char*> {
 protected:
  void TrainTwo(Program* chief, Program* other) {
    StartPs(2, absl::StrCat("replication { ", GetParam(), " } ",
                            "stop { steps: 7 }"));
    other->target = 3;
    // Each takes at least one step.
    absl::Notification chief_began;
    absl::Notification other_began;
    const auto meet = [](absl::Notification& own, absl::Notification& others) {
      return [&](ProgramTask&, const ProgramSteps::Offer& offer) {
        if (offer.step != 1) return;
        own.Notify();
        others.WaitForNotification();
      };
    };
    chief->on_step = meet(chief_began, other_began);
    other->on_step = meet(other_began, chief_began);
    std::thread other_thread([&] { Train(1, other); });
    Train(0, chief);
    other_thread.join();
    EXPECT_EQ(chief->exit_code, 0);
    EXPECT_EQ(other->exit_code, 0);
    EXPECT_THAT(lines_.errors(), IsEmpty());
  }
};

INSTANTIATE_TEST_SUITE_P(Modes, LastValuesTest,
                         testing::Values("async {}", "sync {}",
                                         "bounded_staleness { bound: 1 }"));

TEST_P(LastValuesTest, OfBothWorkers_AreThoseOfTheLastCheckpoint) {
  train_dir_ = NewTrainDir();
  Program chief;
  Program other;
  TrainTwo(&chief, &other);
  const std::vector<float> saved = SavedValues(train_dir_);
  EXPECT_EQ(chief.w, saved);
  EXPECT_EQ(other.w, saved);
  EXPECT_NE(chief.seen.back(), saved[0]);
}

TEST_P(LastValuesTest, WithoutATrainDir_AreTheSameInBothWorkers) {
  Program chief;
  Program other;
  TrainTwo(&chief, &other);
  EXPECT_EQ(chief.w, other.w);
  EXPECT_NE(chief.seen.back(), chief.w[0]);
}

TEST_P(LastValuesTest, OfOneWorker_AreBehindItsLastStep) {
  StartPs(1,
          absl::StrCat("replication { ", GetParam(), " } stop { steps: 7 }"));
  Program program;
  Train(0, &program);
  EXPECT_EQ(program.w[0], SgdByHand(0, 1, 8).back());
  EXPECT_TRUE(program.has_values);
}

TEST_F(ProgramTaskTest, FinishedRunStartedAgain_HasItsLastValues) {
  train_dir_ = NewTrainDir();
  constexpr char kMore[] = "replication { async {} } stop { steps: 4 }";
  for (const bool restarted : {false, true}) {
    StartPs(1, kMore);
    Program program;
    program.w = {restarted ? -100.0f : 0.0f};
    Train(0, &program);
    EXPECT_EQ(program.exit_code, 0);
    EXPECT_EQ(program.seen.size(), restarted ? 0 : 4);
    EXPECT_TRUE(program.has_values);
    EXPECT_EQ(program.w[0], SgdByHand(0, 1, 5).back());
  }
}

// One whose last pull fails.
class FailedLastPullTest : public ProgramTaskTest {
 protected:
  void TrainOne(Program* program) {
    StartPs(1, "replication { async {} } stop { steps: 4 }");
    std::atomic<bool> fails = false;
    program->on_step = [&fails](ProgramTask&,
                                const ProgramSteps::Offer& offer) {
      fails = offer.step == 4;
    };
    ProgramOptions options = Options(0, *program);
    options.make_links = [make = options.make_links,
                          &fails](const WorkerOptions& worker) {
      auto links = make(worker);
      for (auto& link : links->shards) {
        link = std::make_unique<LinkWithoutPulls>(std::move(link), &fails);
      }
      return links;
    };
    Train(options, program);
    EXPECT_EQ(program->exit_code, 0);
    EXPECT_THAT(lines_.errors(),
                Contains(HasSubstr("the job's last values to the program")));
  }
};

TEST_F(FailedLastPullTest, ChiefReadsItsCheckpoint) {
  train_dir_ = NewTrainDir();
  Program program;
  TrainOne(&program);
  EXPECT_TRUE(program.has_values);
  EXPECT_EQ(program.w, SavedValues(train_dir_));
}

TEST_F(FailedLastPullTest, ChiefWithoutATrainDir_SaysThatItHasNoValues) {
  Program program;
  TrainOne(&program);
  EXPECT_FALSE(program.has_values);
}

TEST_F(ProgramTaskTest, FinishedRunOnTheSamePsTasks_HasItsLastValues) {
  train_dir_ = NewTrainDir();
  StartPs(1, "replication { async {} } stop { steps: 4 }");
  Program before;
  Train(0, &before);
  Program after;
  after.w = {-100};
  // They serve the finished job, and nothing is loaded.
  Train(0, &after);
  EXPECT_EQ(after.exit_code, 0);
  EXPECT_THAT(after.seen, IsEmpty());
  EXPECT_TRUE(after.has_values);
  EXPECT_EQ(after.w, SavedValues(train_dir_));
}

TEST_F(ProgramTaskTest, WorkerOfAJobThatIsOver_SaysThatItHasNoValues) {
  StartPs(2, "replication { async {} } stop { steps: 2 }");
  Program program;
  ProgramOptions options = Options(-1, program);
  options.number_task = [](const WorkerOptions& worker) { return worker.self; };
  Train(options, &program);
  EXPECT_EQ(program.exit_code, 0);
  EXPECT_FALSE(program.has_values);
}

TEST_F(ProgramTaskTest, BoundedStaleness_TrainsAsSgdByHand) {
  StartPs(1,
          "replication { bounded_staleness { bound: 1 } } stop { steps: 8 }");
  Program program;
  Train(0, &program);
  EXPECT_EQ(program.exit_code, 0);
  EXPECT_EQ(program.seen, SgdByHand(0, 1, 8));
}

TEST_F(ProgramTaskTest, SyncWithABackupWorker_DoesNotWaitForTheSlowOne) {
  StartPs(2,
          "replication { sync { replicas_to_aggregate: 1 total_replicas: 2 } } "
          "stop { steps: 6 }");
  absl::Notification last;
  Program chief;
  chief.on_step = [&](ProgramTask&, const ProgramSteps::Offer& offer) {
    if (offer.global_step == 5) last.Notify();
  };
  Program slow;
  slow.on_step = [&](ProgramTask&, const ProgramSteps::Offer&) {
    last.WaitForNotification();
  };
  std::thread other([&] { Train(1, &slow); });
  Train(0, &chief);
  other.join();
  EXPECT_EQ(chief.exit_code, 0);
  EXPECT_EQ(slow.exit_code, 0);
  EXPECT_EQ(chief.seen, SgdByHand(0, 1, 6));
}

TEST_F(ProgramTaskTest, ChiefWithACheckpoint_GoesOn) {
  train_dir_ = NewTrainDir();
  StartPs(1, "replication { async {} } stop { steps: 4 }");
  Program before;
  Train(0, &before);
  EXPECT_EQ(before.exit_code, 0);
  StartPs(1, "replication { async {} } stop { steps: 7 }");
  Program after;
  after.w = {-100};
  Train(0, &after);
  EXPECT_EQ(after.exit_code, 0);
  const std::vector<float> all = SgdByHand(0, 1, 7);
  EXPECT_EQ(after.seen, std::vector<float>(all.begin() + 4, all.end()));
}

TEST_F(ProgramTaskTest, WithEpochRows_EachRowIsTrainedOnOnceAnEpoch) {
  StartPs(2, "replication { async {} } stop { epochs: 2 }");
  std::vector<Program> programs(2);
  const auto train = [&](int index) {
    ProgramOptions options = Options(index, programs[index]);
    options.epoch_rows = 30;
    options.step_rows = 3;
    options.steps_ahead = 1;
    Train(options, &programs[index]);
  };
  std::thread other([&] { train(1); });
  train(0);
  other.join();
  EXPECT_EQ(programs[0].exit_code, 0);
  EXPECT_EQ(programs[1].exit_code, 0);
  std::vector<int64_t> rows = programs[0].rows;
  rows.insert(rows.end(), programs[1].rows.begin(), programs[1].rows.end());
  std::vector<int64_t> counts(30, 0);
  for (const int64_t row : rows) ++counts.at(row);
  EXPECT_THAT(counts, Each(2));
}

TEST_F(ProgramTaskTest, WithEpochRows_TheOrderIsThatOfACppWorker) {
  StartPs(1, "replication { async {} } stop { epochs: 1 }");
  Program program;
  ProgramOptions options = Options(0, program);
  options.epoch_rows = 10;
  options.step_rows = 2;
  Train(options, &program);
  EXPECT_EQ(program.exit_code, 0);
  EXPECT_EQ(program.rows, EpochPermutation(10, /*seed=*/3, /*epoch=*/0,
                                           /*shuffle=*/true));
}

TEST_F(ProgramTaskTest, ChiefWithACheckpoint_GoesOnWithTheRowsThatAreLeft) {
  train_dir_ = NewTrainDir();
  std::vector<int64_t> rows;
  for (const absl::string_view stop : {"steps: 2", "epochs: 2"}) {
    StartPs(1, absl::StrCat("replication { async {} } stop { ", stop, " }"));
    Program program;
    ProgramOptions options = Options(0, program);
    options.epoch_rows = 10;
    options.step_rows = 2;
    Train(options, &program);
    EXPECT_EQ(program.exit_code, 0);
    rows.insert(rows.end(), program.rows.begin(), program.rows.end());
  }
  std::vector<int64_t> wanted = EpochPermutation(10, 3, 0, true);
  const std::vector<int64_t> second = EpochPermutation(10, 3, 1, true);
  wanted.insert(wanted.end(), second.begin(), second.end());
  EXPECT_EQ(rows, wanted);
}

TEST_F(ProgramTaskTest, WorkerWithAnotherShape_IsRefusedByName) {
  StartPs(2, "replication { async {} } stop { steps: 1000000 }");
  absl::Notification trains;
  absl::Notification refused;
  Program chief;
  chief.on_step = [&](ProgramTask& task, const ProgramSteps::Offer&) {
    if (!trains.HasBeenNotified()) trains.Notify();
    if (refused.HasBeenNotified()) task.Stop(15);
  };
  Program other;
  other.w = {0, 0};
  std::thread chief_thread([&] { Train(0, &chief); });
  trains.WaitForNotification();
  Train(1, &other);
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.failure.message(), HasSubstr("tensor: \"w\" [2]"));
  EXPECT_THAT(other.failure.message(), HasSubstr("tensor: \"w\" [1]"));
  refused.Notify();
  chief_thread.join();
}

TEST_F(ProgramTaskTest, StoppedBySignal_SavesAndEndsWithItsCode) {
  train_dir_ = NewTrainDir();
  StartPs(1, "replication { async {} } stop { steps: 1000000 }");
  Program program;
  program.on_step = [&](ProgramTask& task, const ProgramSteps::Offer& offer) {
    if (offer.step < 4) return;
    program.gives = false;
    task.Stop(15);
  };
  Train(0, &program);
  EXPECT_EQ(program.exit_code, 128 + 15);
  EXPECT_THAT(ReadAll(train_dir_ + "/ckpt-000000000003/manifest.textproto"),
              HasSubstr("global_step: 3"));
}

TEST_F(ProgramTaskTest, WorkerThatIsDone_LeavesAndTheOthersGoOn) {
  train_dir_ = NewTrainDir();
  StartPs(2, "replication { async {} }");
  absl::Notification other_left;
  const auto stop_from = [](Program* program, int64_t step) {
    program->on_step = [program, step](ProgramTask& task,
                                       const ProgramSteps::Offer& offer) {
      program->gives = offer.step < step;
      if (!program->gives) task.Stop(0);
    };
  };
  Program chief;
  Program other;
  stop_from(&chief, 5);
  stop_from(&other, 3);
  chief.on_step = [&, then = chief.on_step](ProgramTask& task,
                                            const ProgramSteps::Offer& offer) {
    if (offer.step == 2) other_left.WaitForNotification();
    then(task, offer);
  };
  std::thread other_thread([&] {
    Train(1, &other);
    other_left.Notify();
  });
  Train(0, &chief);
  other_thread.join();
  EXPECT_EQ(other.exit_code, 0);
  EXPECT_EQ(chief.exit_code, 0);
  EXPECT_THAT(lines_.errors(), IsEmpty());
  const auto result = ParseJson(ReadAll(train_dir_ + "/result.json"));
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->Find("global_step")->text, "6");
  EXPECT_EQ(result->Find("stop_reason")->text, "done");
}

TEST_F(ProgramTaskTest, ClosedAfterAGivenStep_CountsIt) {
  train_dir_ = NewTrainDir();
  StartPs(1, "replication { async {} }");
  Program program;
  std::vector<float> gradient = {1};
  ProgramTask task(Options(0, program), {absl::MakeSpan(program.w)});
  ProgramSteps::Offer offer;
  while (task.steps().Await(absl::Seconds(1), &offer) !=
         ProgramSteps::State::kStep) {
  }
  ASSERT_THAT(task.steps().Give({absl::MakeSpan(gradient)}, {}), IsOk());
  EXPECT_EQ(task.Close(), 0);
  EXPECT_THAT(ReadAll(train_dir_ + "/ckpt-000000000001/manifest.textproto"),
              HasSubstr("global_step: 1"));
}

TEST_F(ProgramTaskTest, SavedAndLogged_BothAreOfTheStep) {
  train_dir_ = NewTrainDir();
  StartPs(1, "replication { async {} } stop { steps: 5 }");
  Program program;
  program.on_step = [](ProgramTask& task, const ProgramSteps::Offer& offer) {
    if (offer.step != 2) return;
    task.Save();
    task.Log("teacher", 0.5);
  };
  Train(0, &program);
  EXPECT_EQ(program.exit_code, 0);
  EXPECT_THAT(ReadAll(train_dir_ + "/ckpt-000000000002/manifest.textproto"),
              HasSubstr("global_step: 2"));
  std::vector<std::string> points;
  const std::string folder = train_dir_ + "/summaries/chief";
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    for (const Event& event : ReadEvents(ReadAll(file.path().string()))) {
      for (const auto& value : event.summary().value()) {
        if (value.tag() != "teacher") continue;
        points.push_back(absl::StrCat(event.step(), " ", value.tag()));
      }
    }
  }
  EXPECT_THAT(points, ElementsAre("2 teacher"));
}

TEST_F(ProgramTaskTest, TaskWithoutANumber_IsNumberedFirst) {
  StartPs(1, "replication { async {} } stop { steps: 2 }");
  Program program;
  ProgramOptions options = Options(-1, program);
  options.number_task = [](const WorkerOptions& worker) {
    TaskId task = worker.self;
    task.set_index(0);
    return task;
  };
  Train(options, &program);
  EXPECT_EQ(program.exit_code, 0);
  EXPECT_THAT(program.seen, SizeIs(2));
}

TEST_F(ProgramTaskTest, TaskWhoseNumberAnotherHas_AsksForAnotherAndTrains) {
  StartPs(3, "replication { async {} } stop { steps: 9 }");
  absl::Notification first_began;
  absl::Notification second_began;
  const auto on_step_one = [](std::function<void()> act) {
    return [act](ProgramTask&, const ProgramSteps::Offer& offer) {
      if (offer.step == 1) act();
    };
  };
  Program chief;
  chief.on_step = on_step_one([&] { second_began.WaitForNotification(); });
  Program first;
  first.on_step = on_step_one([&] {
    first_began.Notify();
    second_began.WaitForNotification();
  });
  Program second;
  second.on_step = on_step_one([&] { second_began.Notify(); });
  std::vector<ProgramOptions> options = {Options(0, chief), Options(-1, first),
                                         Options(-1, second)};
  options[1].number_task = [](const WorkerOptions& worker) {
    TaskId task = worker.self;
    task.set_index(1);
    return task;
  };
  int asked = 0;
  options[2].number_task = [&](const WorkerOptions& worker) {
    first_began.WaitForNotification();
    TaskId task = worker.self;
    EXPECT_EQ(task.index(), -1);
    task.set_index(++asked);
    return task;
  };
  std::thread of_first([&] { Train(options[1], &first); });
  std::thread of_second([&] { Train(options[2], &second); });
  Train(options[0], &chief);
  of_first.join();
  of_second.join();
  EXPECT_EQ(asked, 2);
  for (const Program* program : {&chief, &first, &second}) {
    EXPECT_EQ(program->exit_code, 0);
  }
}

TEST_F(ProgramTaskTest, TaskThatGetsNoNumber_IsDone) {
  StartPs(1, "replication { async {} } stop { steps: 2 }");
  Program program;
  ProgramOptions options = Options(-1, program);
  options.number_task = [](const WorkerOptions& worker) { return worker.self; };
  Train(options, &program);
  EXPECT_EQ(program.exit_code, 0);
  EXPECT_THAT(program.seen, IsEmpty());
}

TEST_F(ProgramTaskTest, StopByEpochsWithoutEpochRows_IsRefusedByName) {
  StartPs(1, "replication { async {} } stop { epochs: 1 }");
  Program program;
  Train(0, &program);
  EXPECT_EQ(program.exit_code, 2);
  EXPECT_THAT(program.failure.message(), HasSubstr("stop.epochs is 1"));
  EXPECT_THAT(program.seen, IsEmpty());
}

TEST_F(ProgramTaskTest, GradientsThatAreNotFinite_EndTheJobByName) {
  StartPs(1, "replication { async {} } stop { steps: 10 }");
  Program program;
  program.target = std::numeric_limits<float>::quiet_NaN();
  Train(0, &program);
  EXPECT_EQ(program.exit_code, 1);
  EXPECT_THAT(program.failure.message(), HasSubstr("the gradient of 'w' is"));
  EXPECT_THAT(program.seen, SizeIs(3));
}

}  // namespace
}  // namespace muster
