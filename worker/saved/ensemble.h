#ifndef WORKER_SAVED_ENSEMBLE_H_
#define WORKER_SAVED_ENSEMBLE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/reporter.h"
#include "worker/executor/compiled_model.h"
#include "worker/executor/repeating_thread.h"
#include "worker/saved/ensemble_member.h"
#include "worker/saved/test_rows.h"
#include "worker/task/saved_model.h"
#include "worker/tower/device_names.h"

namespace muster {

// Trained models that are fed the same rows, a batch at a time, and answer as
// one. One model is an ensemble, too. One thread.
//
//   ASSIGN_OR_RETURN(const auto ensemble, Ensemble::Create(options));
//   RETURN_IF_ERROR(ensemble->Load());
//   while (true) {
//     ASSIGN_OR_RETURN(const bool more, ensemble->Next());
//     if (!more) break;
//     // ensemble->outputs() has those of the rows ensemble->indices().
//   }
//
// The i-th member computes on the i-th of the devices, counted round and round.
// Devices compute side by side, each on a thread of its own (the first on the
// caller's), the members of one in turn. A batch has as many rows as the first
// member evaluates at once. Members that read rows alike share them; the others
// have a reader each, which starts at the same row.
class Ensemble {
 public:
  struct Options {
    // At least one; names differ.
    std::vector<EnsembleMember> members;
    DeviceChoice device_choice;
    bool log_device_placement = false;
    // Divided among the devices.
    int compute_threads = 1;
    // The rows have the labels that the losses read.
    bool is_labelled = false;
    Reporter reporter;
  };

  // Compiles the models, and opens the data; a formula makes those of the first
  // member's seed. Errors: InvalidArgument if members differ in their data,
  // classes or outputs; those of ChooseDevices, SavedModel::Create and
  // OpenDataSet, with the member's name.
  static absl::StatusOr<std::unique_ptr<Ensemble>> Create(
      const Options& options);

  // Reads the parameters, and says from where. Errors: SavedModel::Load's, with
  // the member's name.
  absl::Status Load();

  // Reads and computes the rows that come next. False after the last one.
  // Errors: the data set's; the models', with the member's name;
  // InvalidArgument if a row is bad for one member only.
  absl::StatusOr<bool> Next();

  // The index after the last row that was looked at, and where the rows of the
  // batch are among those: bad ones are left out.
  int64_t end() const { return end_; }
  const std::vector<int64_t>& indices() const {
    return rows_.front()->indices();
  }
  // [rows, num_outputs]: MeanOutputs of the batch.
  absl::Span<const float> outputs() const {
    return absl::MakeConstSpan(outputs_).first(indices().size() *
                                               model(0).num_outputs());
  }

  size_t size() const { return members_.size(); }
  const EnsembleMember& member(size_t i) const { return members_[i].given; }
  // The file or checkpoint of its parameters, and its device.
  const std::string& path(size_t i) const { return members_[i].path; }
  std::string device(size_t i) const { return members_[i].model->device(); }
  // The model, with the outputs and the loss of the batch.
  const CompiledModel& model(size_t i) const {
    return *members_[i].model->model();
  }
  double loss(size_t i) const { return members_[i].loss; }
  const Batch& batch(size_t i) const { return members_[i].rows->batch(); }

  // The first member's rows, as all others'.
  const TestRows& rows() const { return *rows_.front(); }

 private:
  struct Member {
    EnsembleMember given;
    std::unique_ptr<SavedModel> model;
    // One of rows_.
    TestRows* rows = nullptr;
    std::string path;
    // Those of the last batch, written by the device's thread.
    absl::Status outcome;
    double loss = 0;
  };

  explicit Ensemble(const Options& options) : options_(options) {}

  absl::Status CreateModels();
  absl::StatusOr<std::unique_ptr<SavedModel>> CreateModel(
      const TrainingSpec& training, const std::string& device,
      int64_t taken_bytes) const;
  absl::Status OpenRows();
  absl::StatusOr<TestRows*> RowsOf(size_t member);
  absl::Status FillRows();
  // Runs the members of a device, until one fails.
  void ComputeLane(size_t lane);
  void Compute();

  // Constant after construction.
  const Options options_;
  size_t num_lanes_ = 1;
  std::vector<Member> members_;
  std::vector<std::unique_ptr<TestRows>> rows_;

  int64_t end_ = 0;
  std::vector<float> outputs_;

  // One for each device but the first. Last, so that they end before all else.
  std::vector<std::unique_ptr<RepeatingThread>> threads_;
};

}  // namespace muster

#endif  // WORKER_SAVED_ENSEMBLE_H_
