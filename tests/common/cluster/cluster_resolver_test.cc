#include "common/cluster/cluster_resolver.h"

#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/cluster/task_id.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kTfConfig[] =
    R"({"cluster":{"ps":["p0:1"],"worker":["w0:1","w1:1"]},)"
    R"("task":{"type":"worker","index":1}})";

ClusterOptions WorkerOptions() {
  ClusterOptions options;
  options.jobs = {"worker", "chief"};
  options.can_be_standalone = true;
  return options;
}

// Writes a file for the running test and returns its path.
std::string WriteFile(const std::string& text) {
  const std::string path =
      testing::TempDir() + "/" +
      testing::UnitTest::GetInstance()->current_test_info()->name();
  std::ofstream(path) << text;
  return path;
}

std::string Task(const ClusterOptions& options) {
  const auto resolved = ResolveCluster(options);
  EXPECT_THAT(resolved, IsOk());
  return resolved.ok() ? TaskName(resolved->task) + " by " + resolved->source
                       : "";
}

TEST(ClusterResolverTest, WithoutSourcesAWorkerIsStandalone) {
  const auto resolved = ResolveCluster(WorkerOptions());
  ASSERT_THAT(resolved, IsOk());
  EXPECT_TRUE(resolved->spec.empty());
  EXPECT_EQ(TaskName(resolved->task), "/job:worker/task:0");
}

TEST(ClusterResolverTest, OneOfALaunchersProcessesDoesNotTrainAlone) {
  const auto launcher_by = [](const char* name, const char* value) {
    return LauncherOfSeveral([=](const char* asked) {
      return std::string(asked) == name ? value : "";
    });
  };
  ClusterOptions options = WorkerOptions();
  options.launcher = launcher_by("SLURM_STEP_NUM_TASKS", "3");
  EXPECT_THAT(ResolveCluster(options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("SLURM_STEP_NUM_TASKS=3"),
                             HasSubstr("--standalone"))));
  options.standalone = true;
  EXPECT_EQ(Task(options), "/job:worker/task:0 by standalone");
  options.standalone = false;
  options.tf_config = kTfConfig;
  EXPECT_EQ(Task(options), "/job:worker/task:1 by TF_CONFIG");

  EXPECT_EQ(launcher_by("WORLD_SIZE", "2"), "WORLD_SIZE=2");
  EXPECT_EQ(launcher_by("JOB_COMPLETION_INDEX", "1"), "JOB_COMPLETION_INDEX=1");
  for (const char* const name : {"WORLD_SIZE", "PMI_SIZE", "RANK"}) {
    EXPECT_EQ(launcher_by(name, "1"), "") << name;
  }
  EXPECT_EQ(launcher_by("WORLD_SIZE", "many"), "");
  EXPECT_EQ(launcher_by("JOB_COMPLETION_INDEX", "0"), "");
}

TEST(ClusterResolverTest, APsNeedsACluster) {
  ClusterOptions options;
  options.jobs = {"ps"};
  EXPECT_THAT(ResolveCluster(options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("no cluster is given")));
}

TEST(ClusterResolverTest, ReadsTensorFlowOneFlags) {
  ClusterOptions options = WorkerOptions();
  options.ps_hosts = "p0:1";
  options.worker_hosts = "w0:1,w1:1";
  EXPECT_EQ(Task(options),
            "/job:worker/task:0 by --ps_hosts and --worker_hosts");
  options.job_name = "worker";
  options.task_index = "1";
  EXPECT_EQ(Task(options),
            "/job:worker/task:1 by --ps_hosts and --worker_hosts");
}

TEST(ClusterResolverTest, ReadsJsonAndTextFiles) {
  ClusterOptions options = WorkerOptions();
  options.cluster_file =
      WriteFile(R"( {"ps": ["p0:1"], "worker": ["w0:1", "w1:1"]})");
  options.task_index = "1";
  EXPECT_EQ(Task(options),
            "/job:worker/task:1 by --cluster=" + options.cluster_file);
  options.task_index = "0";
  options.cluster_file = WriteFile(
      "job { name: 'ps' tasks { key: 0 value: 'p:1' } }"
      "job { name: 'chief' tasks { key: 0 value: 'c:1' } }");
  options.job_name = "chief";
  EXPECT_EQ(Task(options),
            "/job:chief/task:0 by --cluster=" + options.cluster_file);
}

TEST(ClusterResolverTest, TfConfigNamesTheOwnTask) {
  ClusterOptions options = WorkerOptions();
  options.tf_config = kTfConfig;
  EXPECT_EQ(Task(options), "/job:worker/task:1 by TF_CONFIG");
}

TEST(ClusterResolverTest, AnEvaluatorNeedNotBeListed) {
  ClusterOptions options = WorkerOptions();
  options.jobs.push_back("evaluator");
  options.tf_config = R"({"cluster":{"ps":["p0:1"],"worker":["w0:1"]},)"
                      R"("task":{"type":"evaluator","index":0}})";
  EXPECT_EQ(Task(options), "/job:evaluator/task:0 by TF_CONFIG");
  // One that is listed is who it says.
  options.tf_config =
      R"({"cluster":{"ps":["p0:1"],"worker":["w0:1"],"evaluator":["e0:1"]},)"
      R"("task":{"type":"evaluator","index":1}})";
  EXPECT_THAT(
      ResolveCluster(options),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("evaluator")));
}

TEST(ClusterResolverTest, TheFirstSourceDecidesWhereAllAgree) {
  ClusterOptions options = WorkerOptions();
  options.tf_config = kTfConfig;
  options.cluster_file =
      WriteFile(R"({"ps": ["p0:1"], "worker": {"0": "w0:1", "1": "w1:1"}})");
  EXPECT_EQ(Task(options),
            "/job:worker/task:1 by --cluster=" + options.cluster_file);
  options.ps_hosts = "p0:1";
  options.worker_hosts = "w0:1,w1:1";
  options.task_index = "1";
  EXPECT_EQ(Task(options),
            "/job:worker/task:1 by --ps_hosts and --worker_hosts");
}

TEST(ClusterResolverTest, WorkersAloneHoldTheParameters) {
  ClusterOptions options = WorkerOptions();
  options.can_all_reduce = true;
  options.worker_hosts = "w0:1,w1:1";
  options.task_index = "1";
  const auto resolved = ResolveCluster(options);
  ASSERT_THAT(resolved, IsOk());
  EXPECT_TRUE(resolved->spec.is_all_reduce());
  EXPECT_EQ(resolved->spec.num_ps(), 2);
  // The sources are compared as they were written.
  options.tf_config =
      R"({"cluster":{"worker":["w0:1","w1:1"]},"task":{"index":1}})";
  EXPECT_THAT(ResolveCluster(options), IsOk());
  options.ps_hosts = "p0:1";
  EXPECT_THAT(ResolveCluster(options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("/job:ps/task:0 is p0:1 in the first and "
                                 "absent in the second")));
}

TEST(ClusterResolverTest, APsHasNothingToDoAmongWorkersAlone) {
  ClusterOptions options;
  options.jobs = {"ps"};
  options.worker_hosts = "w0:1,w1:1";
  EXPECT_THAT(ResolveCluster(options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--ps_hosts and --worker_hosts: the cluster "
                                 "has no ps task: its workers hold")));
}

TEST(ClusterResolverTest, RefusesTwoSourcesWithDifferentAddresses) {
  ClusterOptions options = WorkerOptions();
  options.tf_config = kTfConfig;
  options.ps_hosts = "p0:1";
  options.worker_hosts = "w0:1,w9:1";
  EXPECT_THAT(ResolveCluster(options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("--ps_hosts and --worker_hosts and "
                                       "TF_CONFIG contradict each other"),
                             HasSubstr("/job:worker/task:1 is w9:1 in the "
                                       "first and w1:1 in the second"))));
}

TEST(ClusterResolverTest, RefusesTwoSourcesWithDifferentOwnTasks) {
  ClusterOptions options = WorkerOptions();
  options.tf_config = kTfConfig;
  options.task_index = "0";
  EXPECT_THAT(ResolveCluster(options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("the own task index is 0 in the first and 1 "
                                 "in the second")));
  options.task_index.clear();
  options.job_name = "chief";
  EXPECT_THAT(ResolveCluster(options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("the own job is 'chief' in the first")));
}

TEST(ClusterResolverTest, RefusesStandaloneWithACluster) {
  ClusterOptions options = WorkerOptions();
  options.standalone = true;
  EXPECT_THAT(ResolveCluster(options), IsOk());
  options.tf_config = kTfConfig;
  EXPECT_THAT(ResolveCluster(options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--standalone and TF_CONFIG contradict")));
}

TEST(ClusterResolverTest, RefusesBadOwnTasks) {
  struct Case {
    const char* job;
    const char* index;
    const char* wanted;
  };
  const Case kCases[] = {
      {"worker", "2",
       "/job:worker/task:2 is not in the cluster: job 'worker' "
       "has the task indices 0, 1"},
      {"chief", "0", "job 'chief' has no tasks"},
      {"wroker", "0",
       "--job_name: unknown job 'wroker'; did you mean 'worker'?"},
      {"ps", "0", "'ps' is not one that this program runs: worker, chief"},
      {"worker", "-7",
       "--task_index must be a whole number, 0 or more, or "
       "any, found '-7'"},
      {"worker", "1x", "found '1x'"},
      {"worker", "any",
       "--ps_hosts and --worker_hosts lists its workers (ps 1, "
       "worker 2); name the index of one"},
      {"evaluator", "any", "a task of job evaluator has a number; name it"},
  };
  for (const Case& c : kCases) {
    ClusterOptions options = WorkerOptions();
    options.jobs.push_back("evaluator");
    options.ps_hosts = "p0:1";
    options.worker_hosts = "w0:1,w1:1";
    options.job_name = c.job;
    options.task_index = c.index;
    EXPECT_THAT(
        ResolveCluster(options),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.wanted)));
  }
}

TEST(ClusterResolverTest, RefusesATaskIndexWithoutACluster) {
  ClusterOptions options = WorkerOptions();
  options.task_index = "1";
  EXPECT_THAT(ResolveCluster(options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("but no cluster")));
}

TEST(ClusterResolverTest, NamesTheFileThatIsBad) {
  ClusterOptions options = WorkerOptions();
  options.cluster_file = "/nowhere/c.json";
  EXPECT_THAT(ResolveCluster(options),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("--cluster: reading /nowhere/c.json")));
  for (const char* text : {"", "{}", R"({"cluster": {}})"}) {
    options.cluster_file = WriteFile(text);
    EXPECT_THAT(ResolveCluster(options),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr(options.cluster_file),
                               HasSubstr("names no task"))));
  }
  options.cluster_file = WriteFile("{\n  nonsense");
  EXPECT_THAT(ResolveCluster(options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr(options.cluster_file + ":2:3: ")));
}

TEST(ClusterResolverTest, TfConfigWithoutAClusterTrainsNobodyAlone) {
  ClusterOptions options = WorkerOptions();
  options.jobs.push_back("evaluator");
  for (const char* text : {"", "  ", "{}", " { } "}) {
    options.tf_config = text;
    EXPECT_EQ(Task(options), "/job:worker/task:0 by standalone") << text;
  }
  for (const char* text :
       {R"({"task":{"type":"worker","index":2}})",
        R"({"task":{"type":"worker","index":0}})",
        R"({"task":{"type":"evaluator","index":0}})",
        R"({"cluster":{},"task":{"type":"worker","index":1}})",
        R"({"cluster":{"worker":[],"ps":[]},"task":{"index":1}})",
        R"({"sparseCluster":{"worker":{},"ps":[]},"task":{"type":"chief"}})",
        R"({"cluster_spec":{"worker":["w0:1"]},"task":{"index":1}})",
        R"({"clusters":{"worker":["w0:1"]}})", R"({"cluster":{}})",
        R"({"environment":"cloud"})"}) {
    options.tf_config = text;
    for (const bool standalone : {false, true}) {
      options.standalone = standalone;
      EXPECT_THAT(ResolveCluster(options),
                  StatusIs(absl::StatusCode::kInvalidArgument,
                           AllOf(HasSubstr("TF_CONFIG"), HasSubstr("cluster"))))
          << text;
    }
  }
}

TEST(ClusterResolverTest, TfConfigWithoutTheOwnTaskIsRefusedWhereThereAreMore) {
  ClusterOptions options = WorkerOptions();
  for (const char* const task : {"", R"(,"task":{"type":"worker"})"}) {
    options.tf_config = absl::StrCat(
        R"({"cluster":{"ps":["p0:1"],"worker":["w0:1","w1:1"]})", task, "}");
    options.task_index.clear();
    EXPECT_THAT(ResolveCluster(options),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("names 2 tasks of job 'worker' and not")));
    options.task_index = "1";
    EXPECT_EQ(Task(options), "/job:worker/task:1 by TF_CONFIG");
  }
  options.task_index.clear();
  options.tf_config = R"({"cluster":{"ps":["p0:1","p1:1"],"worker":["w0:1"]}})";
  EXPECT_EQ(Task(options), "/job:worker/task:0 by TF_CONFIG");
}

TEST(ClusterResolverTest, AFileMayGiveTheClusterOfTfConfigsTask) {
  ClusterOptions options = WorkerOptions();
  options.cluster_file =
      WriteFile(R"({"ps": ["p0:1"], "worker": ["w0:1", "w1:1"]})");
  options.tf_config =
      R"({"task":{"type":"worker","index":1},"environment":"cloud"})";
  EXPECT_EQ(Task(options),
            "/job:worker/task:1 by --cluster=" + options.cluster_file);
}

TEST(ClusterResolverTest, AClusterWithoutTheOwnJobIsRefused) {
  ClusterOptions chief = WorkerOptions();
  chief.job_name = "chief";
  chief.cluster_file = WriteFile(R"({"ps": ["p0:1"], "worker": "any"})");
  EXPECT_THAT(ResolveCluster(chief),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("job 'chief' has no tasks")));
  ClusterOptions ps;
  ps.jobs = {"ps"};
  ps.cluster_file = WriteFile(R"({"ps": [], "worker": ["w0:1"]})");
  EXPECT_THAT(ResolveCluster(ps), StatusIs(absl::StatusCode::kInvalidArgument,
                                           HasSubstr("has no ps task")));
}

TEST(ClusterResolverTest, WhereAnyWorkerMayComeOneNamesItsNumber) {
  ClusterOptions options = WorkerOptions();
  for (const char* const workers : {"any", ""}) {
    options.ps_hosts = "p0:1";
    options.worker_hosts = workers;
    options.task_index.clear();
    EXPECT_THAT(ResolveCluster(options),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("takes any worker (ps 1, any worker)"),
                               HasSubstr("--task_index=0 for the chief"))));
    options.task_index = "5";
    EXPECT_EQ(Task(options),
              "/job:worker/task:5 by --ps_hosts and --worker_hosts");
    options.task_index = "4096";
    EXPECT_THAT(ResolveCluster(options),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("--task_index must be 0 to 4095")));
  }
}

TEST(ClusterResolverTest, AnyWorkerHasNoNumberYet) {
  ClusterOptions options = WorkerOptions();
  options.task_index = "any";
  EXPECT_THAT(ResolveCluster(options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("but no cluster")));
  options.ps_hosts = "p0:1";
  const auto resolved = ResolveCluster(options);
  ASSERT_THAT(resolved, IsOk());
  EXPECT_EQ(resolved->task.job(), "worker");
  EXPECT_EQ(resolved->task.index(), -1);
  options.tf_config = R"({"task":{"type":"worker","index":1}})";
  EXPECT_THAT(ResolveCluster(options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("TF_CONFIG says that this is "
                                 "/job:worker/task:1")));
}

TEST(ClusterResolverTest, RefusesLoopbackBesideOtherHosts) {
  struct Case {
    const char* ps;
    const char* workers;
    const char* wanted;
  };
  const Case kCases[] = {
      {"localhost:1", "h1:1", "/job:ps/task:0 is localhost:1, which means"},
      {"0.0.0.0:1", "h1:1", "/job:ps/task:0 is 0.0.0.0:1, which means"},
      {"[::]:1", "10.0.0.1:1", "/job:ps/task:0 is [::]:1, which means"},
      {"h0:1", "h1:1,127.0.0.1:1", "/job:worker/task:1 is 127.0.0.1:1, which"},
      {"h0:1,[::1]:1", "h1:1", "and /job:ps/task:0 is h0:1; list the address"},
  };
  for (const Case& c : kCases) {
    ClusterOptions options = WorkerOptions();
    options.ps_hosts = c.ps;
    options.worker_hosts = c.workers;
    EXPECT_THAT(
        ResolveCluster(options),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 AllOf(HasSubstr(c.wanted), HasSubstr("--bind=ADDRESS"))));
  }
}

TEST(ClusterResolverTest, LoopbackAloneIsOneMachine) {
  ClusterOptions options = WorkerOptions();
  options.ps_hosts = "localhost:1,127.0.0.2:1";
  options.worker_hosts = "[::1]:1,127.0.0.1:1,0.0.0.0:2";
  EXPECT_THAT(ResolveCluster(options), IsOk());
}

}  // namespace
}  // namespace muster
