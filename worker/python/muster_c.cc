#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "common/cluster/task_id.h"
#include "common/config/text_format.h"
#include "common/process/exit_code.h"
#include "common/rpc/protocol.h"
#include "common/tensor/first_row.h"
#include "common/tls/task_keys.h"
#include "proto/table.pb.h"
#include "worker/program/program_steps.h"
#include "worker/program/program_task.h"
#include "worker/python/c_call.h"
#include "worker/python/muster.h"
#include "worker/python/program_options.h"

struct muster_job {
  std::unique_ptr<muster::TaskKeys> keys;
  // Elements, one a tensor.
  std::vector<int64_t> sizes;
  // Floats of a row, one a table.
  std::vector<int64_t> dims;
  bool deals_rows = false;
  // The one that Await gave last.
  muster::ProgramSteps::Offer offer;
  // In the place of gradients that are NULL.
  std::vector<float> zeros;
  // Last: uses the keys.
  std::unique_ptr<muster::ProgramTask> task;
};

namespace muster {
namespace {

absl::StatusOr<std::unique_ptr<muster_job>> Start(const char* spec,
                                                  float* const* values) {
  RETURN_IF_ERROR(CheckGiven("spec", spec));
  RETURN_IF_ERROR(CheckGiven("values", values));
  ASSIGN_OR_RETURN(ResolvedProgram program, ResolveProgram(spec));
  const SignalsBlocked blocked;
  RETURN_IF_ERROR(SetUpProcess(&program.cluster.task));
  ASSIGN_OR_RETURN(KeyedProgram keyed, MakeProgramOptions(std::move(program)));
  auto job = std::make_unique<muster_job>();
  job->keys = std::move(keyed.keys);
  job->sizes = ElementsOf(keyed.options.tensors);
  for (const ProgramTable& table : keyed.options.tables) {
    job->dims.push_back(table.dim());
  }
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

// More could not be in memory; their floats can be counted.
constexpr int64_t kMostIds = int64_t{1} << 40;

// Ids that a caller has, and floats of their rows.
absl::Status CheckIds(const int64_t* ids, int64_t count, const char* name,
                      const float* rows) {
  if (count < 0 || count > kMostIds) {
    return absl::InvalidArgumentError(
        absl::StrCat("count is ", count, ", wanted 0 to ", kMostIds));
  }
  if (count == 0) return absl::OkStatus();
  RETURN_IF_ERROR(CheckGiven("ids", ids));
  return CheckGiven(name, rows);
}

// Floats of a row of the table.
absl::StatusOr<int64_t> DimOf(const muster_job* job, int table) {
  RETURN_IF_ERROR(CheckGiven("job", job));
  const auto tables = static_cast<int>(job->dims.size());
  if (table >= 0 && table < tables) return job->dims[table];
  return absl::InvalidArgumentError(
      tables == 0 ? absl::StrCat("table ", table, " of a job without tables")
                  : absl::StrCat("table ", table, "; wanted one from 0 to ",
                                 tables - 1));
}

absl::Status PullRows(muster_job* job, int table, absl::Span<const int64_t> ids,
                      float* values, int timeout_ms, int* kind) {
  ASSIGN_OR_RETURN(const int64_t dim, DimOf(job, table));
  using State = ProgramSteps::State;
  ASSIGN_OR_RETURN(const State state,
                   job->task->steps().PullRows(
                       table, ids, absl::MakeSpan(values, ids.size() * dim),
                       absl::Milliseconds(std::max(timeout_ms, 0))));
  if (state == State::kWaiting) *kind = MUSTER_NOT_YET;
  if (state == State::kOver) *kind = MUSTER_JOB_OVER;
  return absl::OkStatus();
}

absl::Status GiveRows(muster_job* job, int table, absl::Span<const int64_t> ids,
                      const float* gradients) {
  ASSIGN_OR_RETURN(const int64_t dim, DimOf(job, table));
  return job->task->steps().GiveRows(
      table, ids, absl::MakeConstSpan(gradients, ids.size() * dim));
}

absl::Status FillFirstRows(const char* text, absl::Span<const int64_t> ids,
                           float* values) {
  RETURN_IF_ERROR(CheckGiven("table_def", text));
  TableDef table;
  RETURN_IF_ERROR(ParseTextProto(text, "table", &table));
  RETURN_IF_ERROR(CheckTable(table.name(), table.dim()));
  const FirstRow first(table);
  for (const int64_t id : ids) {
    first.Fill(id, absl::MakeSpan(values, table.dim()));
    values += table.dim();
  }
  return absl::OkStatus();
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

const char* muster_error() { return muster::LastError(); }

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

int muster_pull_rows(muster_job* job, int table, const int64_t* ids,
                     int64_t count, float* values, int timeout_ms) {
  int kind = MUSTER_OK;
  const absl::Status status = muster::Guard([&] {
    RETURN_IF_ERROR(muster::CheckIds(ids, count, "values", values));
    return muster::PullRows(job, table, absl::MakeConstSpan(ids, count), values,
                            timeout_ms, &kind);
  });
  return status.ok() ? kind : muster::KindOf(status);
}

int muster_push_rows(muster_job* job, int table, const int64_t* ids,
                     int64_t count, const float* gradients) {
  return muster::KindOf(muster::Guard([&] {
    RETURN_IF_ERROR(muster::CheckIds(ids, count, "gradients", gradients));
    return muster::GiveRows(job, table, absl::MakeConstSpan(ids, count),
                            gradients);
  }));
}

int muster_first_rows(const char* table_def, const int64_t* ids, int64_t count,
                      float* values) {
  return muster::KindOf(muster::Guard([&] {
    RETURN_IF_ERROR(muster::CheckIds(ids, count, "values", values));
    return muster::FillFirstRows(table_def, absl::MakeConstSpan(ids, count),
                                 values);
  }));
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

}  // extern "C"
