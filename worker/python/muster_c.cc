#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/call_once.h"
#include "absl/base/const_init.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/logging.h"
#include "common/base/status_macros.h"
#include "common/cluster/task_id.h"
#include "common/process/environment.h"
#include "common/process/exit_code.h"
#include "common/process/process_setup.h"
#include "common/process/thread_supply.h"
#include "common/rpc/protocol.h"
#include "common/tensor/shape.h"
#include "common/tls/task_keys.h"
#include "grpc/support/log.h"
#include "spdlog/spdlog.h"
#include "worker/client/call_status.h"
#include "worker/program/program_steps.h"
#include "worker/program/program_task.h"
#include "worker/python/job_reader.h"
#include "worker/python/muster.h"
#include "worker/python/program_options.h"

struct muster_job {
  std::unique_ptr<muster::TaskKeys> keys;
  // Elements, one a tensor.
  std::vector<int64_t> sizes;
  bool deals_rows = false;
  // The one that Await gave last.
  muster::ProgramSteps::Offer offer;
  // In the place of gradients that are NULL.
  std::vector<float> zeros;
  // Last: uses the keys.
  std::unique_ptr<muster::ProgramTask> task;
};

struct muster_reader {
  std::unique_ptr<muster::JobReader> job;
  // Once they are known.
  std::vector<muster_tensor> tensors;
  std::vector<int64_t> sizes;
};

namespace muster {
namespace {

// About as many as gRPC, the session, links and timers have.
constexpr int kMostThreads = 16;

// This process is the child of one in which a job has threads. Those are not
// here, and what they had locked stays so.
std::atomic<bool> is_forked{false};
thread_local std::string last_error;

int KindOf(const absl::Status& status) {
  if (status.ok()) return MUSTER_OK;
  if (is_forked) return MUSTER_ERROR_FORKED;
  if (absl::IsUnauthenticated(status)) return MUSTER_ERROR_SECURITY;
  if (IsOfFile(status)) {
    if (absl::IsResourceExhausted(status)) return MUSTER_ERROR_UNAVAILABLE;
    if (absl::IsDataLoss(status)) return MUSTER_ERROR_CHECKPOINT;
  }
  if (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) {
    return MUSTER_ERROR_UNAVAILABLE;
  }
  return absl::IsInternal(status) ? MUSTER_ERROR_FAILED : MUSTER_ERROR_CONFIG;
}

// Makes the call, and its error this thread's last one. An exception must not
// reach a caller in C: one is of memory or threads that there are none of.
template <typename Call>
absl::Status Guard(Call call) {
  absl::Status status;
  if (is_forked) {
    status = absl::FailedPreconditionError(
        "this process was forked from one that takes part in a job, or reads "
        "one: its "
        "threads and connections are not here; start the job in the process "
        "that uses it, or make processes with spawn before it is started");
  } else {
    try {
      status = call();
    } catch (const std::exception& failure) {
      status = absl::InternalError(failure.what());
    }
  }
  last_error = std::string(status.message());
  return status;
}

absl::Status CheckGiven(const char* name, const void* argument) {
  if (argument != nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name, " is NULL"));
}

// All signals stay with the program's threads.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

// Signal handlers, limits and the heap's settings are the program's.
void SetUpOnce() {
  static absl::once_flag once;
  absl::call_once(once, [] {
    LockWithoutChecks();
    gpr_set_log_function([](gpr_log_func_args*) {});
    pthread_atfork(nullptr, nullptr, [] { is_forked = true; });
  });
}

// Others of the process may be using the logger before another one.
void KeepLogger() {
  static auto& kept = *new std::vector<std::shared_ptr<spdlog::logger>>;
  kept.push_back(spdlog::default_logger());
}

// Lines have the name of the process's first task; those of a reader before it
// have none.
void SetUpLog(const TaskId* task) {
  static absl::Mutex mu(absl::kConstInit);
  static bool is_named = false;
  static bool is_set_up = false;
  absl::MutexLock lock(&mu);
  if (is_named || (is_set_up && task == nullptr)) return;
  LogOptions log;
  if (task != nullptr && task->index() >= 0) log.task_name = TaskName(*task);
  log.no_color = !Environment("NO_COLOR").empty();
  KeepLogger();
  SetUpLogging(log).IgnoreError();
  is_set_up = true;
  is_named = task != nullptr;
}

absl::StatusOr<std::unique_ptr<muster_job>> Start(const char* spec,
                                                  float* const* values) {
  RETURN_IF_ERROR(CheckGiven("spec", spec));
  RETURN_IF_ERROR(CheckGiven("values", values));
  ASSIGN_OR_RETURN(ResolvedProgram program, ResolveProgram(spec));
  SetUpOnce();
  SetUpLog(&program.cluster.task);
  const SignalsBlocked blocked;
  // Without its threads gRPC would abort, or wait for them for ever.
  RETURN_IF_ERROR(CheckThreads(kMostThreads));
  ASSIGN_OR_RETURN(KeyedProgram keyed, MakeProgramOptions(std::move(program)));
  auto job = std::make_unique<muster_job>();
  job->keys = std::move(keyed.keys);
  job->sizes = ElementsOf(keyed.options.tensors);
  job->deals_rows = keyed.options.epoch_rows > 0;
  std::vector<absl::Span<float>> spans;
  for (size_t i = 0; i < job->sizes.size(); ++i) {
    RETURN_IF_ERROR(
        CheckGiven(absl::StrCat("values[", i, "]").c_str(), values[i]));
    spans.emplace_back(values[i], job->sizes[i]);
  }
  job->task =
      std::make_unique<ProgramTask>(std::move(keyed.options), std::move(spans));
  return job;
}

absl::Status Resolve(const char* text, muster_task* task) {
  RETURN_IF_ERROR(CheckGiven("spec", text));
  RETURN_IF_ERROR(CheckGiven("task", task));
  ASSIGN_OR_RETURN(const ResolvedProgram program, ResolveProgram(text));
  const ResolvedCluster& cluster = program.cluster;
  *task = {};
  // Of a few names, all of them shorter.
  cluster.task.job().copy(task->job, sizeof(task->job) - 1);
  task->index = cluster.task.index();
  task->is_chief = cluster.task == cluster.spec.chief() ? 1 : 0;
  task->num_ps = cluster.spec.num_ps();
  task->num_workers =
      cluster.spec.takes_any_worker()
          ? 0
          : static_cast<int32_t>(cluster.spec.training_tasks().size());
  return absl::OkStatus();
}

absl::Status Await(muster_job* job, int timeout_ms, muster_step* step) {
  RETURN_IF_ERROR(CheckGiven("job", job));
  RETURN_IF_ERROR(CheckGiven("step", step));
  using State = ProgramSteps::State;
  const State state = job->task->steps().Await(
      absl::Milliseconds(std::max(timeout_ms, 0)), &job->offer);
  if (state != State::kStep) {
    step->state = state == State::kOver ? MUSTER_OVER : MUSTER_WAITING;
    step->has_values = job->task->steps().has_values() ? 1 : 0;
    return absl::OkStatus();
  }
  const ProgramSteps::Offer& offer = job->offer;
  *step = {};
  step->state = MUSTER_STEP;
  step->step = offer.step;
  step->global_step = offer.global_step;
  step->model_epoch = offer.model_epoch;
  step->leases = static_cast<int32_t>(offer.leases.size());
  step->staleness = offer.staleness;
  step->dropped = offer.dropped ? 1 : 0;
  return absl::OkStatus();
}

absl::StatusOr<int64_t> CopyRows(muster_job* job, int ahead, int64_t* rows,
                                 int64_t size, int64_t* epoch) {
  RETURN_IF_ERROR(CheckGiven("job", job));
  if (size > 0) RETURN_IF_ERROR(CheckGiven("rows", rows));
  const auto& leases = job->offer.leases;
  if (!job->deals_rows || ahead < 0 ||
      ahead >= static_cast<int>(leases.size())) {
    return -1;
  }
  int64_t first_epoch = 0;
  const std::vector<int64_t> leased =
      job->task->RowsOf(leases[ahead], &first_epoch);
  const auto count = static_cast<int64_t>(leased.size());
  if (size > 0) std::copy_n(leased.begin(), std::min(size, count), rows);
  if (epoch != nullptr) *epoch = first_epoch;
  return count;
}

ProgramSteps::Figures FiguresOf(const muster_report* report) {
  ProgramSteps::Figures figures;
  if (report == nullptr) {
    figures.loss = std::nan("");
    return figures;
  }
  figures.loss = report->loss;
  figures.examples = report->examples == -1 ? 0 : report->examples;
  figures.correct = report->correct;
  figures.learning_rate_factor = report->learning_rate_factor;
  return figures;
}

absl::Status GiveStep(muster_job* job, const float* const* gradients,
                      const muster_report* report) {
  RETURN_IF_ERROR(CheckGiven("job", job));
  RETURN_IF_ERROR(CheckGiven("gradients", gradients));
  const std::vector<int64_t>& sizes = job->sizes;
  std::vector<absl::Span<float>> spans;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (gradients[i] == nullptr && job->zeros.empty()) {
      job->zeros.resize(*std::max_element(sizes.begin(), sizes.end()));
    }
    // Nobody writes to it: gradients are pushed from where they lie.
    float* const gradient = gradients[i] == nullptr
                                ? job->zeros.data()
                                : const_cast<float*>(gradients[i]);
    spans.emplace_back(gradient, sizes[i]);
  }
  return job->task->steps().Give(std::move(spans), FiguresOf(report));
}

absl::Status GiveTensor(muster_job* job, int tensor, const float* gradient,
                        const muster_report* report) {
  RETURN_IF_ERROR(CheckGiven("job", job));
  RETURN_IF_ERROR(CheckGiven("gradient", gradient));
  const auto tensors = static_cast<int>(job->sizes.size());
  // One that is not there has no size, and is refused by its number.
  const int64_t size = tensor >= 0 && tensor < tensors ? job->sizes[tensor] : 0;
  return job->task->steps().GiveEarly(
      tensor, absl::MakeSpan(const_cast<float*>(gradient), size),
      FiguresOf(report));
}

absl::StatusOr<std::unique_ptr<muster_reader>> OpenReader(const char* spec) {
  RETURN_IF_ERROR(CheckGiven("spec", spec));
  SetUpOnce();
  SetUpLog(/*task=*/nullptr);
  const SignalsBlocked blocked;
  RETURN_IF_ERROR(CheckThreads(kMostThreads));
  auto reader = std::make_unique<muster_reader>();
  ASSIGN_OR_RETURN(reader->job, JobReader::Connect(spec));
  return reader;
}

absl::StatusOr<bool> ReadTensors(muster_reader* reader, int timeout_ms) {
  const SignalsBlocked blocked;
  ASSIGN_OR_RETURN(
      const bool is_there,
      reader->job->Await(absl::Milliseconds(std::max(timeout_ms, 0))));
  if (!is_there || !reader->tensors.empty()) return is_there;
  for (const TensorDef& tensor : reader->job->tensors()) {
    reader->tensors.push_back(
        {tensor.name().c_str(), tensor.shape().data(), tensor.shape_size()});
    reader->sizes.push_back(NumElements(tensor.shape()));
  }
  return true;
}

absl::StatusOr<bool> ReadValues(muster_reader* reader, int timeout_ms,
                                float* const* values) {
  const std::vector<int64_t>& sizes = reader->sizes;
  if (sizes.empty()) {
    return absl::InvalidArgumentError(
        "muster_read_values before muster_read_tensors has given the tensors");
  }
  std::vector<absl::Span<float>> spans;
  for (size_t i = 0; i < sizes.size(); ++i) {
    RETURN_IF_ERROR(
        CheckGiven(absl::StrCat("values[", i, "]").c_str(), values[i]));
    spans.emplace_back(values[i], sizes[i]);
  }
  const SignalsBlocked blocked;
  return reader->job->Read(absl::Milliseconds(std::max(timeout_ms, 0)), spans);
}

// A call that says whether it is done.
template <typename Call>
int ForReader(muster_reader* reader, Call call) {
  bool is_done = false;
  const absl::Status status = Guard([&]() -> absl::Status {
    RETURN_IF_ERROR(CheckGiven("reader", reader));
    ASSIGN_OR_RETURN(is_done, call());
    return absl::OkStatus();
  });
  return status.ok() && !is_done ? MUSTER_NOT_YET : KindOf(status);
}

// For the calls that any thread may make.
template <typename Call>
int ForJob(muster_job* job, Call call) {
  return KindOf(Guard([&] {
    RETURN_IF_ERROR(CheckGiven("job", job));
    return call();
  }));
}

}  // namespace
}  // namespace muster

extern "C" {

const char* muster_version() { return muster::kMusterVersion.data(); }

int muster_abi() { return MUSTER_ABI; }

const char* muster_error() { return muster::last_error.c_str(); }

int muster_resolve(const char* spec, muster_task* task) {
  return muster::KindOf(
      muster::Guard([&] { return muster::Resolve(spec, task); }));
}

muster_job* muster_start(const char* spec, float* const* values, int* error) {
  std::unique_ptr<muster_job> job;
  const absl::Status status = muster::Guard([&] {
    ASSIGN_OR_RETURN(job, muster::Start(spec, values));
    return absl::OkStatus();
  });
  if (error != nullptr) *error = muster::KindOf(status);
  return job.release();
}

int muster_await(muster_job* job, int timeout_ms, muster_step* step) {
  const absl::Status status =
      muster::Guard([&] { return muster::Await(job, timeout_ms, step); });
  if (status.ok()) return step->state;
  if (step != nullptr) {
    step->state = MUSTER_OVER;
    step->has_values = 0;
  }
  return MUSTER_OVER;
}

int64_t muster_rows(muster_job* job, int ahead, int64_t* rows, int64_t size,
                    int64_t* epoch) {
  int64_t count = -1;
  muster::Guard([&] {
    ASSIGN_OR_RETURN(count, muster::CopyRows(job, ahead, rows, size, epoch));
    return absl::OkStatus();
  }).IgnoreError();
  return count;
}

int muster_push(muster_job* job, const float* const* gradients,
                const muster_report* report) {
  return muster::KindOf(
      muster::Guard([&] { return muster::GiveStep(job, gradients, report); }));
}

int muster_push_tensor(muster_job* job, int tensor, const float* gradient,
                       const muster_report* report) {
  return muster::KindOf(muster::Guard(
      [&] { return muster::GiveTensor(job, tensor, gradient, report); }));
}

int muster_stop(muster_job* job, int signal) {
  return muster::ForJob(job, [&] {
    job->task->Stop(signal);
    return absl::OkStatus();
  });
}

int muster_save(muster_job* job) {
  return muster::ForJob(job, [&] {
    job->task->Save();
    return absl::OkStatus();
  });
}

int muster_log(muster_job* job, const char* name, double value) {
  return muster::ForJob(job, [&] {
    RETURN_IF_ERROR(muster::CheckGiven("name", name));
    job->task->Log(name, value);
    return absl::OkStatus();
  });
}

int muster_close(muster_job* job) {
  int exit_code = muster::kExitFailed;
  muster::ForJob(job, [&] {
    exit_code = job->task->Close();
    const absl::Status failure = job->task->failure();
    delete job;
    return failure;
  });
  return exit_code;
}

muster_reader* muster_read_open(const char* spec, int* error) {
  std::unique_ptr<muster_reader> reader;
  const absl::Status status = muster::Guard([&] {
    ASSIGN_OR_RETURN(reader, muster::OpenReader(spec));
    return absl::OkStatus();
  });
  if (error != nullptr) *error = muster::KindOf(status);
  return reader.release();
}

int muster_read_tensors(muster_reader* reader, int timeout_ms,
                        const muster_tensor** tensors, int* count) {
  return muster::ForReader(reader, [&]() -> absl::StatusOr<bool> {
    RETURN_IF_ERROR(muster::CheckGiven("tensors", tensors));
    RETURN_IF_ERROR(muster::CheckGiven("count", count));
    ASSIGN_OR_RETURN(const bool is_there,
                     muster::ReadTensors(reader, timeout_ms));
    *tensors = reader->tensors.data();
    *count = static_cast<int>(reader->tensors.size());
    return is_there;
  });
}

int muster_read_values(muster_reader* reader, int timeout_ms,
                       float* const* values) {
  return muster::ForReader(reader, [&]() -> absl::StatusOr<bool> {
    RETURN_IF_ERROR(muster::CheckGiven("values", values));
    return muster::ReadValues(reader, timeout_ms, values);
  });
}

int muster_read_close(muster_reader* reader) {
  return muster::ForReader(reader, [&]() -> absl::StatusOr<bool> {
    delete reader;
    return true;
  });
}

}  // extern "C"
