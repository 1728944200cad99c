#include "ps_server/http/looker.h"

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <utility>

#include "common/rpc/deadline.h"
#include "common/rpc/protocol.h"
#include "common/rpc/status_conversion.h"
#include "grpcpp/client_context.h"
#include "proto/parameter_service.grpc.pb.h"

namespace muster {
namespace {

double CpuSeconds() {
  rusage used = {};
  getrusage(RUSAGE_SELF, &used);
  return absl::ToDoubleSeconds(absl::DurationFromTimeval(used.ru_utime) +
                               absl::DurationFromTimeval(used.ru_stime));
}

int64_t ResidentBytes() {
  int64_t pages = 0;
  int64_t resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

}  // namespace

struct Looker::Look {
  std::vector<Done> asked;
  absl::Mutex mu;
  PsLook look ABSL_GUARDED_BY(mu);
  // Parts that are still to come.
  int missing ABSL_GUARDED_BY(mu) = 0;
};

Looker::Looker(Options options)
    : options_(std::move(options)), started_(options_.clock->Now()) {
  for (const auto& [task, open] : options_.others) {
    others_[task] = std::make_unique<PeerChannel>(open);
  }
  thread_ = options_.clock->StartThread([this] { Run(); });
}

Looker::~Looker() {
  {
    absl::MutexLock lock(&mu_);
    quit_ = true;
  }
  thread_.reset();
  absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(this, &Looker::IsIdle));
}

void Looker::Ask(Reach reach, Done done) {
  absl::MutexLock lock(&mu_);
  asked_.push_back(std::move(done));
  if (reach == Reach::kAllTasks) reach_ = reach;
}

void Looker::Run() {
  // Between two requests of others that this thread carries out.
  const std::function<void()> hook = [this] { MaybeBegin(); };
  const Strand::YieldHook yield_hook = options_.shard->YieldTo(&hook);
  for (;;) {
    {
      absl::MutexLock lock(&mu_);
      mu_.Await(absl::Condition(this, &Looker::HasWork));
      if (quit_) return;
    }
    MaybeBegin();
  }
}

void Looker::MaybeBegin() {
  const auto look = std::make_shared<Look>();
  Reach reach = Reach::kOwnTask;
  {
    absl::MutexLock lock(&mu_);
    if (quit_ || asked_.empty() || is_looking_) return;
    is_looking_ = true;
    look->asked.swap(asked_);
    std::swap(reach, reach_);
  }
  {
    absl::MutexLock lock(&look->mu);
    look->look.task_index = options_.task_index;
    look->look.num_ps = options_.num_ps;
    look->look.version = std::string(kMusterVersion);
    look->look.started = started_;
    look->look.knows_jobs = options_.coordination != nullptr;
    // The shard's, the jobs', and one that is there when all are asked.
    look->missing = 3;
  }
  if (reach == Reach::kAllTasks) AskOthers(look);
  const bool has_jobs =
      options_.coordination != nullptr &&
      options_.coordination->Look([this, look](std::vector<JobLook> jobs) {
        {
          absl::MutexLock lock(&look->mu);
          look->look.jobs = std::move(jobs);
        }
        Arrive(look);
      });
  if (!has_jobs) Arrive(look);
  Arrive(look);
  // Last: may carry out others' requests, too. Once closed, nobody is answered.
  options_.shard->Look([this, look](ShardLook shard) {
    {
      absl::MutexLock lock(&look->mu);
      look->look.shard = std::move(shard);
    }
    Arrive(look);
  });
}

void Looker::AskOthers(const std::shared_ptr<Look>& look) {
  struct Call {
    grpc::ClientContext context;
    ListNamespacesRequest request;
    ListNamespacesReply reply;
    std::shared_ptr<grpc::Channel> channel;
    std::unique_ptr<ParameterService::Stub> stub;
  };
  for (const auto& [task, peer] : others_) {
    const auto call = std::make_shared<Call>();
    call->channel = peer->Get();
    call->stub = ParameterService::NewStub(call->channel);
    call->context.set_deadline(
        ToGrpcDeadline(options_.clock->Now() + kPatience));
    {
      absl::MutexLock lock(&look->mu);
      ++look->missing;
    }
    {
      absl::MutexLock lock(&mu_);
      ++calls_;
    }
    call->stub->async()->ListNamespaces(
        &call->context, &call->request, &call->reply,
        [this, look, call, task = task,
         peer = peer.get()](const grpc::Status& status) {
          if (status.ok()) {
            absl::MutexLock lock(&look->mu);
            look->look.others[task] = std::move(call->reply);
          } else {
            peer->OnFailure(call->channel, ToAbslStatus(status));
          }
          Arrive(look);
          absl::MutexLock lock(&mu_);
          --calls_;
        });
  }
}

void Looker::Arrive(const std::shared_ptr<Look>& look) {
  std::shared_ptr<const PsLook> whole;
  {
    absl::MutexLock lock(&look->mu);
    if (--look->missing > 0) return;
    look->look.now = options_.clock->Now();
    look->look.wall = options_.wall_time();
    look->look.cpu_seconds = CpuSeconds();
    look->look.resident_bytes = ResidentBytes();
    whole = std::make_shared<const PsLook>(std::move(look->look));
  }
  {
    absl::MutexLock lock(&mu_);
    is_looking_ = false;
  }
  for (const Done& done : look->asked) done(whole);
}

}  // namespace muster
