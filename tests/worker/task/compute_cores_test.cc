#include "worker/task/compute_cores.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/cluster/cluster_spec.h"
#include "common/cluster/host_flags.h"
#include "common/cluster/task_id.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ClusterSpec Cluster(int workers, bool evaluator) {
  ClusterDef def;
  JobDef* const ps = def.add_job();
  ps->set_name(kPsJob);
  (*ps->mutable_tasks())[0] = "localhost:1";
  JobDef* const job = def.add_job();
  job->set_name(kWorkerJob);
  for (int i = 0; i < workers; ++i) {
    (*job->mutable_tasks())[i] = absl::StrCat("localhost:", 2 + i);
  }
  if (evaluator) {
    JobDef* const evaluator_job = def.add_job();
    evaluator_job->set_name(kEvaluatorJob);
    (*evaluator_job->mutable_tasks())[0] = "localhost:1000";
  }
  return *ClusterSpec::Create(def);
}

// 16 cores, of 3 tasks.
ThreadLimits Limits() {
  ThreadLimits limits;
  limits.cores = 16;
  limits.tasks = 3;
  return limits;
}

void ExpectThreads(const ThreadLimits& limits, int count,
                   const std::string& source) {
  const auto threads = ChooseThreads(limits);
  ASSERT_THAT(threads, IsOk());
  EXPECT_EQ(threads->count, count) << source;
  EXPECT_EQ(threads->source, source);
  EXPECT_EQ(threads->warning, "");
}

TEST(ComputeCoresTest, WhatIsAskedForStandsOverAllLimits) {
  ThreadLimits limits = Limits();
  limits.quota = 2;
  limits.omp_num_threads = limits.slurm_cpus_per_task = "1";
  limits.cpus = "0-15";
  ExpectThreads(limits, 16, "--cpus=0-15");
  limits.asked = 5;
  ExpectThreads(limits, 5, "as asked");
  for (const int asked : {-1, 1000000}) {
    limits.asked = asked;
    EXPECT_THAT(ChooseThreads(limits),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr(absl::StrCat("--compute_threads=", asked,
                                                ": wanted 1 to 1024"))));
  }
}

TEST(ComputeCoresTest, CoresOrQuotaAreDividedByTheTasks) {
  ThreadLimits limits = Limits();
  ExpectThreads(limits, 5, "16 cores over 3 tasks");
  limits.quota = 100;
  ExpectThreads(limits, 5, "16 cores over 3 tasks");
  limits.quota = 6;
  ExpectThreads(limits, 2, "cgroup quota of 6 cores over 3 tasks");
  limits.quota = 2;
  ExpectThreads(limits, 1, "cgroup quota of 2 cores over 3 tasks");
  limits.tasks = 1;
  limits.quota = 2.5;
  ExpectThreads(limits, 3, "cgroup quota of 2.5 cores");
  limits.quota = 0.5;
  ExpectThreads(limits, 1, "cgroup quota of 0.5 cores");
  limits.quota = 1;
  ExpectThreads(limits, 1, "cgroup quota of 1 core");
  limits.cores = 1;
  ExpectThreads(limits, 1, "1 core");
}

TEST(ComputeCoresTest, VariablesAreOfOneTaskAndNotDivided) {
  ThreadLimits limits = Limits();
  limits.omp_num_threads = "4,2";
  ExpectThreads(limits, 4, "OMP_NUM_THREADS=4");
  limits.slurm_cpus_per_task = "3";
  ExpectThreads(limits, 3, "SLURM_CPUS_PER_TASK=3");
  limits.omp_num_threads = "1";
  ExpectThreads(limits, 1, "OMP_NUM_THREADS=1");
  limits.omp_num_threads = limits.slurm_cpus_per_task = "8";
  ExpectThreads(limits, 5, "16 cores over 3 tasks");
}

TEST(ComputeCoresTest, AVariableThatMakesNoSenseIsSaidAndPassedOver) {
  for (const char* const text :
       {"0", "-2", "many", ",2", "1.5", "99999999999"}) {
    ThreadLimits limits = Limits();
    limits.omp_num_threads = text;
    const auto threads = ChooseThreads(limits);
    ASSERT_THAT(threads, IsOk());
    EXPECT_EQ(threads->count, 5) << text;
    EXPECT_THAT(threads->warning,
                HasSubstr(absl::StrCat("OMP_NUM_THREADS=", text, ": wanted")));
  }
}

TEST(ComputeCoresTest, TheTasksOfAMachineAreKnownByItsAddresses) {
  ClusterDef def;
  JobDef* const ps = def.add_job();
  ps->set_name(kPsJob);
  (*ps->mutable_tasks())[0] = "10.0.0.1:1";
  JobDef* const workers = def.add_job();
  workers->set_name(kWorkerJob);
  const char* const hosts[] = {"gpu1", "gpu1.example.", "10.0.0.1", "gpu2",
                               "gpu3"};
  for (int i = 0; i < 5; ++i) {
    (*workers->mutable_tasks())[i] = absl::StrCat(hosts[i], ":", 2 + i);
  }
  const ClusterSpec spec = *ClusterSpec::Create(def);
  std::vector<std::string> asked;
  const auto is_own =
      [&asked](const std::string& host) -> absl::StatusOr<bool> {
    asked.push_back(host);
    if (host == "gpu2") return absl::UnavailableError("no answer");
    return host != "gpu3";
  };
  EXPECT_EQ(TasksOfMachine(spec, MakeTaskId(kWorkerJob, 0), is_own), 3);
  // Not the own name, and nothing after the name that nobody could look up.
  EXPECT_THAT(asked, ElementsAre("gpu1.example", "10.0.0.1", "gpu2"));
  // One that is not listed computes, too.
  EXPECT_EQ(TasksOfMachine(spec, MakeTaskId(kEvaluatorJob, 0), is_own), 4);
  EXPECT_EQ(TasksOfMachine(ClusterSpec(), MakeTaskId(kWorkerJob, 0), is_own),
            1);
}

TEST(ComputeCoresTest, TheListedEvaluatorComputesToo) {
  const auto is_own = [](const std::string&) -> absl::StatusOr<bool> {
    ADD_FAILURE() << "all have one name";
    return false;
  };
  for (const TaskId& self :
       {MakeTaskId(kWorkerJob, 0), MakeTaskId(kEvaluatorJob, 0)}) {
    EXPECT_EQ(TasksOfMachine(Cluster(2, /*evaluator=*/true), self, is_own), 3);
  }
}

TEST(ComputeCoresTest, AWorkerThatComesKnowsOfNoOther) {
  const auto is_own = [](const std::string&) -> absl::StatusOr<bool> {
    ADD_FAILURE() << "the chief's machine is not listed";
    return true;
  };
  const ClusterSpec spec = ParseHostFlags("gpu1:1", "any").value();
  for (const int index : {0, 3}) {
    EXPECT_EQ(TasksOfMachine(spec, MakeTaskId(kWorkerJob, index), is_own), 1);
  }
}

TEST(ComputeCoresTest, NamesWhatIsNoCore) {
  EXPECT_THAT(PinToCpus(""), IsOk());
  for (const char* const text : {"x", "1-", "3-1", "0-1-2", "-1", "100000"}) {
    EXPECT_THAT(PinToCpus(text), StatusIs(absl::StatusCode::kInvalidArgument,
                                          HasSubstr("--cpus=")))
        << text;
  }
}

TEST(IsOwnHostTest, LoopbackIsThisMachineByAnyOfItsAddresses) {
  for (const char* const host : {"127.0.0.1", "127.0.1.1", "localhost"}) {
    EXPECT_THAT(IsOwnHost(host), IsOkAndHolds(true)) << host;
  }
}

// RFC 1112 keeps 240/4 for nobody, and RFC 6761's name stands for nothing;
// where no one can be asked, that is said.
TEST(IsOwnHostTest, WhatNoInterfaceHasIsAnother) {
  EXPECT_THAT(IsOwnHost("240.0.0.1"), IsOkAndHolds(false));
  EXPECT_FALSE(IsOwnHost("host.invalid").value_or(false));
}

}  // namespace
}  // namespace muster
