#include "worker/saved/ensemble.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/posix_file_system.h"
#include "worker/saved/mean_outputs.h"
#include "worker/training/training_parts.h"

namespace muster {
namespace {

absl::Status OfMember(const EnsembleMember& member,
                      const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat(MessageStart(member), status.message()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Ensemble>> Ensemble::Create(
    const Options& options) {
  auto ensemble = absl::WrapUnique(new Ensemble(options));
  RETURN_IF_ERROR(CheckSameData(options.members));
  RETURN_IF_ERROR(ensemble->CreateModels());
  RETURN_IF_ERROR(ensemble->OpenRows());
  const CompiledModel& first = ensemble->model(0);
  ensemble->outputs_.resize(first.batch_size() * first.num_outputs());
  for (size_t lane = 1; lane < ensemble->num_lanes_; ++lane) {
    ensemble->threads_.push_back(std::make_unique<RepeatingThread>(
        [self = ensemble.get(), lane] { self->ComputeLane(lane); }));
  }
  return ensemble;
}

absl::Status Ensemble::CreateModels() {
  ASSIGN_OR_RETURN(const ChosenDevices devices,
                   ChooseDevices(options_.device_choice));
  if (!devices.note.empty()) options_.reporter.Info(devices.note);
  num_lanes_ = std::min(devices.names.size(), options_.members.size());
  int64_t taken_bytes = 0;
  std::vector<const CompiledModel*> models;
  for (const EnsembleMember& given : options_.members) {
    Member& member = members_.emplace_back();
    member.given = given;
    // All read the same batch.
    member.given.training.mutable_evaluation()->set_batch_size(
        options_.members.front().training.evaluation().batch_size());
    auto model =
        CreateModel(member.given.training,
                    devices.names[models.size() % num_lanes_], taken_bytes);
    if (!model.ok()) return OfMember(given, model.status());
    member.model = *std::move(model);
    models.push_back(member.model->model());
    taken_bytes += models.back()->memory_bytes();
  }
  return CheckSameOutputs(options_.members, models);
}

absl::StatusOr<std::unique_ptr<SavedModel>> Ensemble::CreateModel(
    const TrainingSpec& training, const std::string& device,
    int64_t taken_bytes) const {
  SavedModel::Options options;
  options.training = training;
  options.device_choice = options_.device_choice;
  options.device_choice.device = device;
  options.device_choice.devices.clear();
  options.device_choice.num_devices = 0;
  options.log_device_placement = options_.log_device_placement;
  options.compute_threads =
      std::max(1, options_.compute_threads / static_cast<int>(num_lanes_));
  options.taken_bytes = taken_bytes;
  options.reporter = options_.reporter;
  return SavedModel::Create(options);
}

absl::Status Ensemble::OpenRows() {
  for (size_t i = 0; i < members_.size(); ++i) {
    const absl::StatusOr<TestRows*> rows = RowsOf(i);
    if (!rows.ok()) return OfMember(members_[i].given, rows.status());
    members_[i].rows = *rows;
  }
  return absl::OkStatus();
}

absl::StatusOr<TestRows*> Ensemble::RowsOf(size_t member) {
  const EnsembleMember& given = members_[member].given;
  for (size_t i = 0; i < member; ++i) {
    if (RowText(members_[i].given) == RowText(given)) return members_[i].rows;
  }
  TrainingSpec training = given.training;
  training.set_seed(members_.front().given.training.seed());
  const LabelKind kind =
      options_.is_labelled ? LabelsOf(model(member).loss()) : LabelKind::kNone;
  ASSIGN_OR_RETURN(auto rows, TestRows::Open(training, model(member), kind,
                                             // Each bad row is told once.
                                             rows_.empty() ? options_.reporter
                                                           : Reporter()));
  rows_.push_back(std::move(rows));
  return rows_.back().get();
}

absl::Status Ensemble::Load() {
  PosixFileSystem file_system;
  for (Member& member : members_) {
    auto path = member.model->Load(&file_system, member.given.train_dir,
                                   member.given.init);
    if (!path.ok()) return OfMember(member.given, path.status());
    member.path = *std::move(path);
    options_.reporter.Info(absl::StrCat(
        MessageStart(member.given), "using the parameters of ", member.path));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> Ensemble::Next() {
  const int64_t first = end_;
  RETURN_IF_ERROR(FillRows());
  if (end_ == first) return false;
  if (indices().empty()) return true;
  Compute();
  std::vector<absl::Span<const float>> outputs;
  for (const Member& member : members_) {
    if (!member.outcome.ok()) return OfMember(member.given, member.outcome);
    outputs.push_back(member.model->model()->outputs());
  }
  MeanOutputs(model(0).loss().prediction, model(0).num_outputs(), outputs,
              absl::MakeSpan(outputs_).first(outputs.front().size()));
  return true;
}

absl::Status Ensemble::FillRows() {
  const int64_t first = end_;
  for (const std::unique_ptr<TestRows>& rows : rows_) {
    ASSIGN_OR_RETURN(const int64_t end, rows->Fill(first));
    if (rows == rows_.front()) end_ = end;
    if (end == end_ && rows->indices() == indices()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "--ensemble: of the rows ", first, " to ", std::max(end, end_) - 1,
        " one is bad for some members and good for others (input.map): a mean "
        "wants the same rows; leave input.on_bad_record: SKIP out to see it"));
  }
  return absl::OkStatus();
}

void Ensemble::Compute() {
  for (const auto& thread : threads_) thread->Start();
  ComputeLane(0);
  for (const auto& thread : threads_) thread->Wait();
}

void Ensemble::ComputeLane(size_t lane) {
  for (size_t i = lane; i < members_.size(); i += num_lanes_) {
    Member& member = members_[i];
    const auto step = member.model->model()->Evaluate(member.rows->batch());
    member.outcome = step.status();
    if (!step.ok()) return;
    member.loss = step->loss;
  }
}

}  // namespace muster
