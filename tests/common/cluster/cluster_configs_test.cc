// Every ready file in cluster_configs parses and holds what its name says.
#include <string>

#include "common/cluster/cluster_resolver.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

ClusterSpec Load(const std::string& name) {
  ClusterOptions options;
  options.cluster_file = "cluster_configs/" + name;
  options.jobs = {"ps"};
  options.can_all_reduce = true;
  const auto resolved = ResolveCluster(options);
  EXPECT_THAT(resolved, IsOk());
  return resolved.ok() ? resolved->spec : ClusterSpec();
}

TEST(ClusterConfigsTest, LocalFilesHoldWhatTheirNamesSay) {
  struct Case {
    const char* file;
    const char* summary;
  };
  const Case kCases[] = {
      {"local_1ps_1worker.json", "ps 1, worker 1"},
      {"local_1ps_2worker.json", "ps 1, worker 2"},
      {"local_1ps_2worker_evaluator.json", "ps 1, worker 2, evaluator 1"},
      {"local_2ps_2worker.json", "ps 2, worker 2"},
      {"local_2ps_3worker.json", "ps 2, worker 3"},
      {"local_1ps_any_worker.json", "ps 1, any worker"},
      {"local_2worker.json", "all-reduce, worker 2"},
  };
  for (const Case& c : kCases) EXPECT_EQ(Load(c.file).Summary(), c.summary);
}

TEST(ClusterConfigsTest, MultiMachineFilesAreTwins) {
  const ClusterSpec json = Load("multi_machine.json");
  EXPECT_EQ(json.Summary(), "ps 2, chief 1, worker 3");
  EXPECT_TRUE(json == Load("multi_machine.textproto"));
}

}  // namespace
}  // namespace muster
