#include "worker/program/program_hook.h"

#include <utility>

#include "common/summary/summary_value.h"
#include "proto/summary.pb.h"

namespace muster {

absl::Status ProgramHook::AfterStep(const StepRecord& step) {
  steps_.OnCounted(step.staleness, step.dropped, step.global_step);
  WriteFigures(step.global_step);
  bool wants_save = false;
  {
    absl::MutexLock lock(&mu_);
    wants_save = std::exchange(wants_save_, false);
  }
  if (wants_save && save_ != nullptr) save_();
  return absl::OkStatus();
}

absl::Status ProgramHook::AtEnd(const EndRecord& end) {
  WriteFigures(end.global_step);
  return absl::OkStatus();
}

void ProgramHook::WriteFigures(int64_t global_step) {
  std::map<std::string, double> figures;
  {
    absl::MutexLock lock(&mu_);
    figures.swap(figures_);
  }
  if (figures.empty() || write_ == nullptr) return;
  Summary summary;
  for (const auto& [name, value] : figures) AddScalar(name, value, &summary);
  write_(global_step, std::move(summary));
}

void ProgramHook::Log(absl::string_view name, double value) {
  absl::MutexLock lock(&mu_);
  figures_[std::string(name)] = value;
}

void ProgramHook::Save() {
  absl::MutexLock lock(&mu_);
  wants_save_ = true;
}

}  // namespace muster
