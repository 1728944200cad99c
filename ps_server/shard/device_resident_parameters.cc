#include "ps_server/shard/device_resident_parameters.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "ps_server/caller/task_name.h"

namespace muster {
namespace {

ResidentTensor PlacesOf(TensorBlocks& tensor) {
  ResidentTensor places;
  places.parameter = {tensor.Stream(/*block=*/0, /*stream=*/0),
                      static_cast<size_t>(tensor.elements())};
  places.slots.resize(tensor.num_slots());
  for (int slot = 0; slot < tensor.num_slots(); ++slot) {
    for (int64_t block = 0; block < tensor.num_blocks(); ++block) {
      places.slots[slot].emplace_back(
          tensor.Stream(block, 1 + slot),
          static_cast<size_t>(tensor.BlockElements(block)));
    }
  }
  return places;
}

bool IsSame(const Sender& a, const Sender& b) {
  return a.incarnation() == b.incarnation() &&
         a.task().job() == b.task().job() &&
         a.task().index() == b.task().index();
}

}  // namespace

absl::Status DeviceResidentParameters::Hold(absl::string_view what,
                                            const Sender& sender,
                                            DeviceParameters* holder,
                                            TensorTable* tensors) {
  RETURN_IF_ERROR(WriteBack());
  holder_ = nullptr;
  std::vector<ResidentTensor> places;
  std::vector<CheckedSlice> slices;
  for (int i = 0; i < tensors->size(); ++i) {
    TensorBlocks& tensor = (*tensors)[i];
    if (tensor.def().kind() != TRAINABLE) {
      return absl::FailedPreconditionError(absl::StrCat(
          what, ": '", tensor.def().name(), "' is ",
          tensor.def().kind() == FROZEN ? "frozen" : "a state tensor",
          "; wanted trainable ones only"));
    }
    places.push_back(PlacesOf(tensor));
    slices.push_back({i, 0, tensor.elements()});
  }
  RETURN_IF_ERROR(Annotate(holder->Take(places), what));
  places_ = std::move(places);
  slices_ = std::move(slices);
  sender_ = sender;
  holder_ = holder;
  is_behind_ = false;
  return absl::OkStatus();
}

absl::Status DeviceResidentParameters::CheckPush(absl::string_view what) const {
  if (holder_ == nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(what, ": the parameters are held by ", TaskName(sender_),
                   ", who alone updates them; nothing can be pushed"));
}

absl::Status DeviceResidentParameters::CheckUpdate(absl::string_view what,
                                                   const Sender& sender) const {
  if (holder_ == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat(what, ": nobody holds the parameters"));
  }
  if (IsSame(sender, sender_)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(what, ": the parameters are held by ", TaskName(sender_)));
}

absl::Status DeviceResidentParameters::WriteBack() {
  if (holder_ == nullptr || !is_behind_) return absl::OkStatus();
  RETURN_IF_ERROR(Annotate(holder_->WriteBack(places_),
                           "write the parameters back that are held"));
  is_behind_ = false;
  return absl::OkStatus();
}

}  // namespace muster
