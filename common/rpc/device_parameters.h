#ifndef COMMON_RPC_DEVICE_PARAMETERS_H_
#define COMMON_RPC_DEVICE_PARAMETERS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/optimizer/update_rule.h"

namespace muster {

// One tensor where its shard keeps it.
struct ResidentTensor {
  absl::Span<float> parameter;
  // slots[i] is the rule's i-th slot: runs, one after another, of as many
  // elements as the parameter.
  std::vector<std::vector<absl::Span<float>>> slots;
};

// Holds a shard's parameters and slots in other memory of its process, such as
// a device's, and updates them there: a write-back cache of the shard's memory
// with one owner (ParameterLink::KeepOnDevice). While a shard is held:
//
// - Versions, counts of updates, duplicate marks, staleness and rate factors
//   stay the shard's, and advance with each step as they do with a push: it
//   tells the holder which blocks to update, as which update.
// - A step of the worker that the holder belongs to is one request
//   (ParameterLink::UpdateOnDevice) with no values: its gradients are those
//   that the holder has at that moment, and nobody here looks whether they are
//   finite. Pushes are refused, whoever sends them.
// - The shard's memory is what it was at the last WriteBack (at first, Take),
//   and nobody else writes there. Before a request reads values or slots (pull,
//   begin of a snapshot) the shard has them written back; if that fails, the
//   request fails. A snapshot that is open keeps what it began with.
// - Values that are loaded (Define) end it: the holder's are of no use then,
//   and it is not told.
//
// Calls come one at a time, from any thread, and may wait for a device. Whoever
// steps waits for his requests that read values, so that the holder is not used
// for a step meanwhile.
class DeviceParameters {
 public:
  virtual ~DeviceParameters() = default;

  // Takes the values and slots as they are, in the shard's order of tensors;
  // what was held before is of no use. Errors: InvalidArgument if these are not
  // the tensors that it is made for; the device's.
  virtual absl::Status Take(absl::Span<const ResidentTensor> tensors) = 0;

  // Updates elements [begin, end) of a tensor, now or before anybody sees them.
  // Between two steps each element at most once. An error is told by the next
  // step and every WriteBack until the next Take.
  virtual void Update(int tensor, int64_t begin, int64_t end,
                      const BlockUpdate& update) = 0;

  // Writes what it holds to the tensors of Take. Errors: the device's; then
  // what is there is a mixture.
  virtual absl::Status WriteBack(absl::Span<const ResidentTensor> tensors) = 0;
};

}  // namespace muster

#endif  // COMMON_RPC_DEVICE_PARAMETERS_H_
