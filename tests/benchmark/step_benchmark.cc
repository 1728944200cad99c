// Where a training step's time goes: each primitive of a compiled model of the
// zoo, in the order of the step.
//   bazel run //tests/benchmark:step_benchmark -- --threads=2 --avx2
// `min` and `median` are wall time in milliseconds over the steps, `cpu` is the
// smallest of the calling thread alone: what to compare while others work.
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "hwy/targets.h"
#include "oneapi/dnnl/dnnl.hpp"
#include "tests/worker/model/test_models.h"
#include "worker/backend/backend.h"
#include "worker/executor/compiled_model.h"

ABSL_FLAG(std::string, model, "mnist_cnn", "A model of worker/model/zoo.");
ABSL_FLAG(bool, avx2, false, "Use no instruction set beyond AVX2.");
ABSL_FLAG(int, threads, 1, "Threads of the backend.");
ABSL_FLAG(int, batch_size, 128, "Rows of a step.");
ABSL_FLAG(int, steps, 20, "Steps that count; three more go before.");

namespace muster {
namespace {

constexpr int kWarmUp = 3;
constexpr uint64_t kSeed = 1;

double Milliseconds(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return 1e3 * static_cast<double>(now.tv_sec) +
         1e-6 * static_cast<double>(now.tv_nsec);
}

// The times of one thing over the steps.
struct Times {
  std::string name;
  std::vector<double> wall, cpu;

  absl::Status Measure(const std::function<absl::Status()>& what) {
    const double wall_start = Milliseconds(CLOCK_MONOTONIC);
    const double cpu_start = Milliseconds(CLOCK_THREAD_CPUTIME_ID);
    const absl::Status status = what();
    cpu.push_back(Milliseconds(CLOCK_THREAD_CPUTIME_ID) - cpu_start);
    wall.push_back(Milliseconds(CLOCK_MONOTONIC) - wall_start);
    return status;
  }
};

using Table = std::vector<std::unique_ptr<Times>>;

// Another primitive, with the time that it takes.
class TimedPrimitive : public Primitive {
 public:
  TimedPrimitive(std::unique_ptr<Primitive> primitive, Times* times)
      : primitive_(std::move(primitive)), times_(times) {
    for (int i = 0; i < kNumOperands; ++i) {
      const Operand operand = static_cast<Operand>(i);
      for (const MemoryLayout& layout : primitive_->layouts(operand)) {
        Take(operand, layout);
      }
    }
    if (primitive_->in_place()) AllowInPlace();
  }

 private:
  absl::Status Run(const Operands& operands) override {
    return times_->Measure([&] { return primitive_->Execute(operands); });
  }

  const std::unique_ptr<Primitive> primitive_;
  Times* const times_;
};

// Another backend, whose primitives are timed. The compiler makes them in the
// order in which they run, but for a reorder of what another reads.
class TimedBackend : public Backend {
 public:
  TimedBackend(std::unique_ptr<Backend> backend, Table* table)
      : backend_(std::move(backend)), table_(table) {}

  absl::string_view name() const override { return backend_->name(); }
  DataType dtype() const override { return backend_->dtype(); }
  Created Create(const Operation& operation, Pass pass,
                 absl::Span<const MemoryLayout> layouts) override {
    ASSIGN_OR_RETURN(auto primitive,
                     backend_->Create(operation, pass, layouts));
    table_->push_back(std::make_unique<Times>());
    Times* const times = table_->back().get();
    times->name =
        absl::StrCat(PrimitiveName(operation, pass), " ", ShapeOf(*primitive));
    return std::make_unique<TimedPrimitive>(std::move(primitive), times);
  }

 private:
  // That of the weights, where it has any.
  static std::string ShapeOf(const Primitive& primitive) {
    for (const Operand operand : {Operand::kWeights, Operand::kDiffWeights,
                                  Operand::kDst, Operand::kDiffDst}) {
      if (primitive.takes(operand)) {
        return primitive.layout(operand).shape.ToString();
      }
    }
    return "";
  }

  const std::unique_ptr<Backend> backend_;
  Table* const table_;
};

double Least(std::vector<double>* values) {
  values->erase(values->begin(), values->begin() + kWarmUp);
  std::sort(values->begin(), values->end());
  return values->front();
}

void Print(Times* times) {
  const double wall = Least(&times->wall), cpu = Least(&times->cpu);
  std::printf("%8.3f %8.3f %8.3f  %s\n", wall,
              times->wall[times->wall.size() / 2], cpu, times->name.c_str());
}

// In oneDNN and in our kernels.
void ForgetAvx512() {
  dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx2);
  // Better targets have lower bits.
  hwy::DisableTargets(HWY_AVX2 - 1);
}

absl::Status Main() {
  if (absl::GetFlag(FLAGS_avx2)) ForgetAvx512();
  BackendOptions cpu;
  cpu.compute_threads = absl::GetFlag(FLAGS_threads);
  auto backend = CreateBackend("cpu", cpu);
  if (!backend.ok()) return backend.status();
  Table table;
  TimedBackend timed(*std::move(backend), &table);
  CompileOptions options;
  options.backend = &timed;
  options.batch_size = absl::GetFlag(FLAGS_batch_size);
  auto model = CompiledModel::Create(
      LoadZooModel(absl::GetFlag(FLAGS_model)).model(), options);
  if (!model.ok()) return model.status();
  absl::Status status = (*model)->InitializeParameters(kSeed);
  const Batch batch =
      MakeBatch(options.batch_size, 28 * 28, (*model)->num_outputs(), kSeed);
  Times step{"the step", {}, {}};
  for (int i = 0; i < kWarmUp + absl::GetFlag(FLAGS_steps); ++i) {
    if (!status.ok()) return status;
    status = step.Measure([&] { return (*model)->Step(batch, i).status(); });
  }
  std::printf("     min   median      cpu  ms\n");
  for (const auto& times : table) Print(times.get());
  Print(&step);
  return status;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  const absl::Status status = muster::Main();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
