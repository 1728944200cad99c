#include "ps_server/caller/known_callers.h"

#include <optional>
#include <string>

#include "gtest/gtest.h"

namespace muster {
namespace {

void AddTask(ClusterDef* cluster, const std::string& job, int index,
             const std::string& address) {
  JobDef* found = nullptr;
  for (JobDef& one : *cluster->mutable_job()) {
    if (one.name() == job) found = &one;
  }
  if (found == nullptr) found = cluster->add_job();
  found->set_name(job);
  (*found->mutable_tasks())[index] = address;
}

ClusterDef TwoWorkers() {
  ClusterDef cluster;
  AddTask(&cluster, "ps", 0, "h0:1");
  AddTask(&cluster, "worker", 0, "h1:1");
  AddTask(&cluster, "worker", 1, "h2:1");
  return cluster;
}

Caller CallerOf(const ClusterDef& cluster, const std::string& job, int index) {
  return KnownCallers(cluster).CallerOf({"muster", job, index});
}

TEST(KnownCallersTest, TheClusterSaysWhoIsTheChief) {
  ClusterDef cluster = TwoWorkers();
  EXPECT_EQ(CallerOf(cluster, "worker", 0).role, Role::kChief);
  EXPECT_EQ(CallerOf(cluster, "worker", 1).role, Role::kWorker);
  // A worker of a named namespace.
  EXPECT_EQ(CallerOf(cluster, "worker", 7).role, Role::kWorker);
  AddTask(&cluster, "chief", 0, "h3:1");
  EXPECT_EQ(CallerOf(cluster, "worker", 0).role, Role::kWorker);
  EXPECT_EQ(CallerOf(cluster, "chief", 0).role, Role::kChief);
  EXPECT_EQ(CallerOf(cluster, "chief", 1).role, Role::kWorker);
}

TEST(KnownCallersTest, OthersAreWhatTheyAreCalled) {
  const ClusterDef cluster = TwoWorkers();
  EXPECT_EQ(CallerOf(cluster, "ps", 0).role, Role::kPs);
  EXPECT_EQ(CallerOf(cluster, "ps", 0).task, TaskKey("ps", 0));
  EXPECT_EQ(CallerOf(cluster, "evaluator", 0).role, Role::kEvaluator);
  EXPECT_EQ(CallerOf(cluster, "viewer", -1).role, Role::kViewer);
  EXPECT_EQ(CallerOf(cluster, "viewer", -1).task, std::nullopt);
  EXPECT_EQ(CallerOf(cluster, "admin", -1).role, Role::kAdmin);
}

TEST(KnownCallersTest, InAllReduceAWorkerIsAlsoThePsAtItsAddress) {
  ClusterDef cluster = TwoWorkers();
  EXPECT_EQ(CallerOf(cluster, "worker", 0).ps, std::nullopt);
  cluster.clear_job();
  AddTask(&cluster, "worker", 0, "h1:1");
  AddTask(&cluster, "worker", 3, "h2:1");
  AddTask(&cluster, "ps", 0, "h1:1");
  AddTask(&cluster, "ps", 1, "h2:1");
  EXPECT_EQ(CallerOf(cluster, "worker", 0).ps, TaskKey("ps", 0));
  EXPECT_EQ(CallerOf(cluster, "worker", 3).ps, TaskKey("ps", 1));
  EXPECT_EQ(CallerOf(cluster, "worker", 1).ps, std::nullopt);
  EXPECT_EQ(ProcessOfPs(cluster, 1), TaskKey("worker", 3));
  EXPECT_EQ(ProcessOfPs(TwoWorkers(), 0), TaskKey("ps", 0));
}

}  // namespace
}  // namespace muster
