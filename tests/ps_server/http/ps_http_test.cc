// The page and the metrics of real ps tasks, asked by cpp-httplib's client.
#include "ps_server/http/ps_http.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/process/stop_latch.h"
#include "common/tls/task_keys.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "httplib.h"
#include "ps_server/ps_task.h"
#include "tests/testing/certificates.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class PsHttpTest : public testing::Test {
 protected:
  static PsTaskOptions Options(int32_t index, int other_port = 1) {
    PsTaskOptions options;
    JobDef* const ps = options.cluster.add_job();
    ps->set_name("ps");
    (*ps->mutable_tasks())[index] = "localhost:1";
    (*ps->mutable_tasks())[1 - index] = absl::StrCat("127.0.0.1:", other_port);
    options.task_index = index;
    options.bind = "127.0.0.1:0";
    options.http_address = "127.0.0.1:0";
    options.incarnation = 7;
    options.clock = SystemClock();
    return options;
  }
  std::unique_ptr<PsTask> Start(PsTaskOptions options) {
    auto task = PsTask::Start(std::move(options), &latch_);
    EXPECT_THAT(task, IsOk());
    return task.ok() ? *std::move(task) : nullptr;
  }
  static std::string Get(const PsTask& task, const char* path) {
    httplib::Client client("127.0.0.1", task.http_port());
    const httplib::Result answer = client.Get(path);
    return answer ? answer->body : httplib::to_string(answer.error());
  }

  StopLatch latch_;
};

TEST_F(PsHttpTest, PsTask0_TellsOfTheJobAndOfEachPsTask) {
  const auto other = Start(Options(1));
  const auto task = Start(Options(0, other->port()));
  EXPECT_THAT(
      Get(*task, "/metrics"),
      HasSubstr("muster_job_phase{namespace=\"\",phase=\"INITIAL\"} 1"));
  const std::string status = Get(*task, "/status.json");
  EXPECT_THAT(status, HasSubstr(R"("phase":"INITIAL")"));
  EXPECT_THAT(status, HasSubstr(R"({"task":1,"has_answered":true)"));
}

TEST_F(PsHttpTest, AnotherPsTask_TellsOfItself) {
  const auto task = Start(Options(1));
  const std::string metrics = Get(*task, "/metrics");
  EXPECT_THAT(metrics, HasSubstr(R"(muster_shard_ready{role="ps",task="1",)"));
  EXPECT_THAT(metrics, Not(HasSubstr("muster_job_phase")));
  EXPECT_THAT(Get(*task, "/status.json"), HasSubstr(R"("knows_jobs":false)"));
}

TEST_F(PsHttpTest, APsTaskThatIsAway_IsToldSo) {
  const auto task = Start(Options(0, /*other_port=*/1));
  EXPECT_THAT(Get(*task, "/status.json"),
              HasSubstr(R"({"task":1,"has_answered":false)"));
}

TEST_F(PsHttpTest, AtTheEnd_NobodyIsAnswered) {
  const auto task = Start(Options(0));
  const int port = task->http_port();
  EXPECT_EQ(Get(*task, "/healthz"), "ok\n");
  task->Drain();
  httplib::Client client("127.0.0.1", port);
  EXPECT_FALSE(client.Get("/healthz"));
}

TEST_F(PsHttpTest, BeyondLoopbackWithoutKeys_IsRefused) {
  PsTaskOptions options = Options(0);
  options.http_address = "0.0.0.0:0";
  EXPECT_THAT(PsTask::Start(options, &latch_),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       HasSubstr("--http_address: refusing to listen on")));
}

TEST_F(PsHttpTest, BeyondLoopbackInATrustedNetwork_IsPlain) {
  PsTaskOptions options = Options(0);
  options.http_address = "0.0.0.0:0";
  options.allow_insecure_network = true;
  const auto task = Start(std::move(options));
  EXPECT_EQ(Get(*task, "/healthz"), "ok\n");
}

TEST_F(PsHttpTest, NoAddress_IsSaid) {
  PsTaskOptions options = Options(0);
  options.http_address = "9180";
  EXPECT_THAT(PsTask::Start(options, &latch_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--http_address: listen on '9180'")));
}

class PsHttpsTest : public PsHttpTest {
 protected:
  PsHttpsTest() {
    auto certificates = Certificates::Make();
    EXPECT_THAT(certificates, IsOk());
    certificates_ = *std::move(certificates);
    TaskKeys::Options options;
    options.dir = certificates_->folder();
    options.job = "ps";
    options.index = 0;
    options.clock = SystemClock();
    auto keys = TaskKeys::Create(std::move(options));
    EXPECT_THAT(keys, IsOk());
    keys_ = *std::move(keys);
  }
  std::unique_ptr<PsTask> StartAt(const std::string& http_address) {
    PsTaskOptions options = Options(0);
    options.http_address = http_address;
    options.credentials = keys_->credentials();
    return Start(std::move(options));
  }
  // The status of the answer to who shows the certificate of this stem; 0 for
  // none.
  int StatusFor(const PsTask& task, const std::string& stem) const {
    const std::string path = absl::StrCat(certificates_->folder(), "/", stem);
    httplib::SSLClient client("127.0.0.1", task.http_port(), path + ".pem",
                              path + ".key");
    client.enable_server_certificate_verification(false);
    const httplib::Result answer = client.Get("/metrics");
    return answer ? answer->status : 0;
  }

  std::unique_ptr<Certificates> certificates_;
  std::unique_ptr<TaskKeys> keys_;
};

TEST_F(PsHttpsTest, BeyondLoopback_ViewersAndAdminsMayLook) {
  const auto task = StartAt("0.0.0.0:0");
  EXPECT_EQ(StatusFor(*task, "viewer"), 200);
  EXPECT_EQ(StatusFor(*task, "admin"), 200);
  for (const char* const other : {"worker-1", "chief-0", "ps-1"}) {
    EXPECT_EQ(StatusFor(*task, other), 403) << other;
  }
}

TEST_F(PsHttpsTest, BeyondLoopback_NobodyIsAnsweredWithoutACertificate) {
  const auto task = StartAt("0.0.0.0:0");
  httplib::SSLClient nameless("127.0.0.1", task->http_port());
  nameless.enable_server_certificate_verification(false);
  EXPECT_FALSE(nameless.Get("/metrics"));
  httplib::Client plain("127.0.0.1", task->http_port());
  EXPECT_FALSE(plain.Get("/metrics"));
}

TEST_F(PsHttpsTest, OnLoopback_WhoIsOnThisMachineMayLook) {
  const auto task = StartAt("localhost:0");
  EXPECT_THAT(Get(*task, "/metrics"), HasSubstr("muster_build_info"));
}

}  // namespace
}  // namespace muster
