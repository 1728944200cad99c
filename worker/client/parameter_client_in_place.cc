// Parameters that are read where the shards keep them.
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/tensor/aligned_places.h"
#include "worker/client/call_status.h"
#include "worker/client/parameter_client.h"

namespace muster {
namespace {

// Where each shard begins each of its tensors, and what all take.
struct ShardPlaces {
  std::vector<int64_t> begins;        // by tensor
  std::vector<AlignedPlaces> places;  // by ps task
};

ShardPlaces PlaceTensors(const ClientModel& model, int num_shards) {
  ShardPlaces placed;
  placed.places.resize(num_shards);
  for (size_t i = 0; i < model.tensors.size(); ++i) {
    const int tensor = static_cast<int>(i);
    placed.begins.push_back(
        placed.places[model.placement[tensor]].Add(model.TensorBytes(tensor)));
  }
  return placed;
}

// Of the only shard; 0 if it has nothing.
int64_t VersionOf(const PulledVersions& versions) {
  const std::vector<int64_t>& parts = versions.parts.front();
  return parts.empty() ? 0 : parts.front();
}

}  // namespace

absl::StatusOr<ParametersInPlace> ParameterClient::MapParameters() {
  const std::shared_ptr<const ClientModel> model = this->model();
  const ShardPlaces placed = PlaceTensors(*model, num_shards());
  ParametersInPlace in_place;
  in_place.memory.resize(num_shards());
  for (int shard = 0; shard < num_shards(); ++shard) {
    const int64_t bytes = placed.places[shard].size_bytes();
    if (bytes == 0) continue;
    absl::StatusOr<std::shared_ptr<const char>> memory =
        links_[shard]->MapParameters(model->fences[shard], bytes);
    RETURN_IF_ERROR(
        Annotate(AbortedIfFenced(memory.status()), options_.ps_names[shard]));
    in_place.memory[shard] = *std::move(memory);
  }
  for (size_t i = 0; i < model->tensors.size(); ++i) {
    in_place.values.push_back(
        {in_place.memory[model->placement[i]].get() + placed.begins[i],
         model->TensorBytes(static_cast<int>(i))});
  }
  RETURN_IF_ERROR(SetInPlace(model));
  return in_place;
}

absl::Status ParameterClient::KeepOnDevice(DeviceParameters* holder) {
  const std::shared_ptr<const ClientModel> model = this->model();
  if (num_shards() != 1) {
    return absl::FailedPreconditionError(
        absl::StrCat("hold the parameters: they are on ", num_shards(),
                     " ps tasks, wanted one"));
  }
  const absl::Status held = links_.front()->KeepOnDevice(
      model->sender, model->fences.front(), holder);
  RETURN_IF_ERROR(Annotate(AbortedIfFenced(held), options_.ps_names.front()));
  return SetInPlace(model);
}

absl::StatusOr<PushOutcome> ParameterClient::UpdateOnDevice(
    int64_t step, const PulledVersions& versions) {
  const std::shared_ptr<const ClientModel> model = this->model();
  const std::string what = absl::StrCat("update of step ", step);
  if (versions.model != model) {
    return absl::FailedPreconditionError(
        absl::StrCat(what, ": its values are of another model epoch"));
  }
  PushPart request;
  *request.mutable_sender() = model->sender;
  *request.mutable_fence() = model->fences.front();
  request.set_step(step);
  request.set_parts(1);
  // They were all pulled at once.
  const int64_t pulled = VersionOf(versions);
  request.set_pulled_version(pulled);
  const absl::StatusOr<PushReply> reply =
      links_.front()->UpdateOnDevice(request);
  RETURN_IF_ERROR(
      Annotate(AbortedIfFenced(reply.status()),
               absl::StrCat(what, ": ", options_.ps_names.front())));
  PushOutcome outcome;
  outcome.max_staleness = reply->staleness();
  outcome.mean_staleness = static_cast<double>(reply->staleness());
  outcome.duplicate_parts = reply->duplicate() ? 1 : 0;
  outcome.pulled_versions = {pulled};
  auto brought = std::make_shared<PulledVersions>(versions);
  for (int64_t& part : brought->parts.front()) part = reply->version();
  outcome.new_versions = brought;
  KeepVersions(std::move(brought));
  return outcome;
}

absl::Status ParameterClient::SetInPlace(
    const std::shared_ptr<const ClientModel>& from) {
  auto next = std::make_shared<ClientModel>(*from);
  next->in_place = true;
  absl::MutexLock lock(&mu_);
  if (model_ != from) {
    return absl::AbortedError(
        "another model epoch was set while the parameters were mapped");
  }
  model_ = std::move(next);
  pulled_versions_ = nullptr;
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const PulledVersions>>
ParameterClient::PullVersions() {
  const auto versions = std::make_shared<PulledVersions>();
  versions->model = model();
  const ClientModel& of = *versions->model;
  absl::StatusOr<std::vector<Frame<PullReply>>> replies =
      CallAll<Frame<PullReply>>(
          NoTensors(), [&](int shard, absl::Time deadline,
                           ReplyCallback<Frame<PullReply>> done) {
            PullRequest request;
            *request.mutable_sender() = of.sender;
            *request.mutable_fence() = of.fences[shard];
            links_[shard]->Pull(request, deadline, std::move(done));
          });
  RETURN_IF_ERROR(Annotate(replies.status(), "pull of versions"));
  for (int shard = 0; shard < num_shards(); ++shard) {
    versions->parts.emplace_back(of.plan.parts[shard].size(),
                                 (*replies)[shard].header.version());
  }
  KeepVersions(versions);
  return versions;
}

}  // namespace muster
