// Whole jobs of programs with sparse tables, in this process.
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/cluster/cluster_spec.h"
#include "common/config/text_format.h"
#include "common/rpc/error_reason.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/forwarding_parameter_link.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/task/local_ps_tasks.h"
#include "worker/program/program_task.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using State = ProgramSteps::State;

constexpr int kPs = 2;
constexpr char kTraining[] = R"pb(
  optimizer {
    name: "sgd"
    attr { name: "learning_rate" f: 1 }
    schedule { name: "constant" }
  }
  placement {
    strategy: "round_robin"
    partition { auto {} }
  }
  table { pattern: ".*" initial: ZEROS }
  checkpoint { keep: 5 max_save_seconds: 300 }
  non_finite { max_refusals: 3 }
  summary { every_steps: 100 }
  seed: 3
)pb";

// Fences one pull of rows.
class OnceFencedLink : public ForwardingParameterLink {
 public:
  OnceFencedLink(std::unique_ptr<ParameterLink> link, std::atomic<int>* after)
      : ForwardingParameterLink(link.get()),
        link_(std::move(link)),
        after_(*after) {}
  void PullRows(Frame<PullRowsRequest> request, absl::Time deadline,
                ReplyCallback<Frame<PullRowsReply>> done) override {
    if (after_-- == 0) return done(FencedError("another epoch"));
    ForwardingParameterLink::PullRows(std::move(request), deadline,
                                      std::move(done));
  }

 private:
  const std::unique_ptr<ParameterLink> link_;
  std::atomic<int>& after_;
};

// A program whose step subtracts `gradient` from some rows of its table.
struct Program {
  float gradient = 1;
  std::vector<int64_t> ids = {3, -8, 1'000'000'007, 3};
  std::vector<float> w = {0};

  // By offer: the first row that was pulled.
  std::vector<float> seen;
  int dropped = 0;
  int exit_code = -1;
  absl::Status failure;
};

class ProgramTablesTest : public testing::Test {
 protected:
  void StartPs(int num_workers, absl::string_view more) {
    num_workers_ = num_workers;
    ps_ = std::make_unique<LocalPsTasks>(kPs, num_workers);
    training_ = absl::StrCat(kTraining, " ", more);
  }

  ProgramOptions Options(int index) {
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
    ProgramTensor& tensor = options.tensors.emplace_back();
    tensor.set_name("w");
    tensor.add_shape(1);
    ProgramTable& table = options.tables.emplace_back();
    table.set_name("user");
    table.set_dim(2);
    options.make_links = [this](const WorkerOptions&) {
      WorkerLinks links = ps_->MakeLinks();
      for (auto& link : links.shards) {
        link = std::make_unique<OnceFencedLink>(std::move(link), &fence_after_);
      }
      return links;
    };
    return options;
  }

  static void Step(ProgramTask& task, Program* program) {
    std::vector<float> rows(program->ids.size() * 2);
    const auto pulled = task.steps().PullRows(
        0, program->ids, absl::MakeSpan(rows), absl::Minutes(5));
    ASSERT_THAT(pulled, IsOk());
    if (*pulled != State::kStep) return;
    EXPECT_EQ(rows[1], rows.back()) << "the same id";
    program->seen.push_back(rows[0]);
    const std::vector<float> gradients(6, program->gradient);
    std::vector<float> w = {1};
    ASSERT_THAT(task.steps().GiveRows(
                    0, absl::MakeConstSpan(program->ids).first(3), gradients),
                IsOk());
    ProgramSteps::Figures figures;
    figures.examples = 1;
    ASSERT_THAT(task.steps().Give({absl::MakeSpan(w)}, figures), IsOk());
    // Both are read until the next offer.
    ProgramSteps::Offer offer;
    while (task.steps().Await(absl::Seconds(1), &offer) == State::kWaiting) {
    }
    if (offer.dropped) ++program->dropped;
  }

  void Train(const ProgramOptions& options, Program* program) {
    ProgramTask task(options, {absl::MakeSpan(program->w)});
    ProgramSteps::Offer offer;
    for (;;) {
      const State state = task.steps().Await(absl::Seconds(1), &offer);
      if (state == State::kOver) break;
      if (state == State::kStep) Step(task, program);
    }
    std::vector<float> rows(2);
    EXPECT_EQ(*task.steps().PullRows(0, {1}, absl::MakeSpan(rows),
                                     absl::ZeroDuration()),
              State::kOver);
    program->exit_code = task.Close();
    program->failure = task.failure();
  }

  std::atomic<int> fence_after_ = -1;
  ReportedLines lines_;

 private:
  ClusterSpec Cluster() const {
    ClusterDef def;
    for (const std::string job : {"ps", "worker"}) {
      JobDef* const tasks = def.add_job();
      tasks->set_name(job);
      for (int i = 0; i < (job == "ps" ? kPs : num_workers_); ++i) {
        (*tasks->mutable_tasks())[i] =
            absl::StrCat("127.0.0.1:", job == "ps" ? 1 : 2, i);
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

TEST_F(ProgramTablesTest, OneWorker_TrainsItsRowsStepByStep) {
  for (const std::string mode : {"async {}", "sync {}"}) {
    StartPs(1, "replication { " + mode + " } stop { steps: 6 }");
    Program program;
    Train(Options(0), &program);
    EXPECT_THAT(program.failure, IsOk());
    EXPECT_THAT(program.seen, ElementsAre(0, -1, -2, -3, -4, -5)) << mode;
    EXPECT_THAT(program.w, ElementsAre(-6)) << mode;
    EXPECT_THAT(lines_.errors(), IsEmpty());
  }
}

TEST_F(ProgramTablesTest, TwoSyncWorkers_TrainRowsByTheirMean) {
  StartPs(2, "replication { sync {} } stop { steps: 5 }");
  Program first;
  Program second;
  second.gradient = 3;
  std::thread other([&] { Train(Options(1), &second); });
  Train(Options(0), &first);
  other.join();
  for (const Program* program : {&first, &second}) {
    EXPECT_THAT(program->failure, IsOk());
    EXPECT_THAT(program->seen, ElementsAre(0, -2, -4, -6, -8));
  }
}

TEST_F(ProgramTablesTest, AStepWhoseRowsAreFenced_IsBegunAnew) {
  StartPs(1, "replication { async {} } stop { steps: 6 }");
  fence_after_ = 4;
  Program program;
  Train(Options(0), &program);
  EXPECT_THAT(program.failure, IsOk());
  EXPECT_EQ(program.dropped, 1);
  EXPECT_THAT(program.w, ElementsAre(-6));
  // One of them was of no effect.
  EXPECT_THAT(program.seen, SizeIs(7));
  EXPECT_EQ(program.seen.back(), -5);
}

}  // namespace
}  // namespace muster
