#include "ps_server/http/status_json.h"

#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ps_server/http/small_look.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(StatusJsonTest, ASmallPsTask_IsToldWhole) {
  PsLook look = SmallLook();
  NamespaceState& other = *look.others[1].add_namespaces();
  look.others[1].set_max_bytes(99);
  other.mutable_shard()->set_bytes(300);
  EXPECT_EQ(
      StatusJson(look),
      R"({"version":"0.1.0","task":"/job:ps/task:0","time_s":1700000000.000,)"
      R"("up_s":100,"cpu_s":1.5,"knows_jobs":true,)"
      R"("ps":[{"task":0,"has_answered":true,"max_bytes":1048576},)"
      R"({"task":1,"has_answered":true,"max_bytes":99}],)"
      R"("namespaces":[{"name":"","job":{"phase":"RUNNING","model_epoch":2,)"
      R"("global_step":25,"stop_steps":100,"examples":800,"round":0,)"
      R"("ends_by":"failed","is_stopped":false,"is_abandoned":false,)"
      R"("saved_step":20,"saved_s":2.5,)"
      R"("staleness_counts":[4,3,0,1],"workers":[)"
      R"({"task":"/job:worker/task:0","state":"trains","steps":25,)"
      R"("examples":800,"dropped_steps":1,"loss":0.25,"staleness":0.75,)"
      R"("last_step_s":10,"silent_s":0,"waits_for":"/job:worker/task:1, )"
      R"(/job:worker/task:2 to push its gradient of step 26"},)"
      R"({"task":"/job:worker/task:1","state":"not come","steps":0,)"
      R"("examples":0,"dropped_steps":0,"loss":null,"staleness":null,)"
      R"("last_step_s":null,"silent_s":0,"waits_for":""},)"
      R"({"task":"/job:worker/task:2","state":"lost","steps":0,)"
      R"("examples":0,"dropped_steps":0,"loss":null,"staleness":null,)"
      R"("last_step_s":null,"silent_s":0,"waits_for":""}]},)"
      R"("shards":[{"phase":"READY","tensors":1,"bytes":400,)"
      R"("slot_bytes":800,"updates":30,"parts":60,"tables":[]},)"
      R"({"phase":"EMPTY","tensors":0,"bytes":300,"slot_bytes":0,)"
      R"("updates":0,"parts":0,"tables":[]}]},)"
      R"({"name":"we\"ird","job":null,"shards":[{"phase":"EMPTY",)"
      R"("tensors":0,"bytes":0,"slot_bytes":0,"updates":0,"parts":0,)"
      R"("tables":[{"name":"ta\\ble\u000a</script>","rows":7,"bytes":700}]},)"
      R"(null]}]})"
      "\n");
}

TEST(StatusJsonTest, APsTaskThatDoesNotAnswer_IsToldSo) {
  EXPECT_THAT(StatusJson(SmallLook()),
              HasSubstr(R"({"task":1,"has_answered":false,"max_bytes":0})"));
}

TEST(StatusJsonTest, NoPathAddressOrIncarnation_IsInIt) {
  const std::string text = StatusJson(SmallLook());
  EXPECT_THAT(text, Not(HasSubstr("secret")));
  EXPECT_THAT(text, Not(HasSubstr("10.0.0.1")));
  EXPECT_THAT(text, Not(HasSubstr("5ec4e7")));
  EXPECT_THAT(text, Not(HasSubstr("6210791")));  // The same, in tens.
}

TEST(StatusJsonTest, ALossThatIsNoNumber_IsNull) {
  PsLook look = SmallLook();
  look.jobs[0].state.mutable_workers(0)->set_last_loss(
      std::numeric_limits<double>::quiet_NaN());
  EXPECT_THAT(StatusJson(look), HasSubstr(R"("loss":null,"staleness":0.75)"));
}

TEST(StatusJsonTest, ATaskThatAnswersWithForeignNumbers_ChangesNoOther) {
  PsLook look = SmallLook();
  look.others[7].add_namespaces()->set_namespace_("elsewhere");
  EXPECT_THAT(StatusJson(look), HasSubstr(R"({"name":"elsewhere","job":null,)"
                                          R"("shards":[null,null]})"));
}

}  // namespace
}  // namespace muster
