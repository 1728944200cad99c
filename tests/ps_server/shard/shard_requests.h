#ifndef TESTS_PS_SERVER_SHARD_SHARD_REQUESTS_H_
#define TESTS_PS_SERVER_SHARD_SHARD_REQUESTS_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"
#include "common/rpc/parameter_link.h"
#include "common/rpc/protocol.h"
#include "proto/parameter_service.pb.h"

namespace muster {

// Builders of requests for tests of the shard.

inline constexpr uint64_t kPsIncarnation = 77;

inline Sender MakeSender(int32_t index, uint64_t incarnation,
                         const std::string& job = "worker") {
  Sender sender;
  sender.mutable_task()->set_job(job);
  sender.mutable_task()->set_index(index);
  sender.set_incarnation(incarnation);
  return sender;
}

inline TensorDef MakeTensor(const std::string& name,
                            const std::vector<int64_t>& shape,
                            TensorKind kind = TRAINABLE) {
  TensorDef def;
  def.set_name(name);
  for (const int64_t dim : shape) def.add_shape(dim);
  def.set_dtype(FLOAT32);
  def.set_kind(kind);
  return def;
}

inline TensorSlice MakeSlice(const std::string& tensor, int64_t offset,
                             int64_t length) {
  TensorSlice slice;
  slice.set_tensor(tensor);
  slice.set_offset(offset);
  slice.set_length(length);
  return slice;
}

template <typename T>
absl::Cord BytesOf(const std::vector<T>& values) {
  return absl::Cord(absl::string_view(
      reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)));
}

template <typename T>
std::vector<T> ValuesOf(const absl::Cord& bytes) {
  const std::string flat(bytes);
  std::vector<T> values(flat.size() / sizeof(T));
  if (!values.empty()) {
    std::memcpy(values.data(), flat.data(), values.size() * sizeof(T));
  }
  return values;
}

inline Fence MakeFence(int64_t epoch = 1) {
  Fence fence;
  fence.set_ps_incarnation(kPsIncarnation);
  fence.set_model_epoch(epoch);
  return fence;
}

inline HelloRequest MakeHello(const Sender& sender, uint64_t takeover = 0) {
  HelloRequest request;
  request.set_protocol_version(kProtocolVersion);
  *request.mutable_sender() = sender;
  request.set_takeover(takeover);
  return request;
}

// Plain SGD with learning rate 1: a gradient of -1 adds 1 exactly.
inline DefineRequest MakeDefine(const Sender& sender,
                                const std::vector<TensorDef>& tensors,
                                int64_t epoch = 1) {
  DefineRequest request;
  *request.mutable_sender() = sender;
  request.set_ps_incarnation(kPsIncarnation);
  request.set_model_epoch(epoch);
  request.set_fingerprint(5);
  for (const TensorDef& tensor : tensors) *request.add_tensors() = tensor;
  request.mutable_optimizer()->set_name("sgd");
  Attr* const rate = request.mutable_optimizer()->add_attr();
  rate->set_name("learning_rate");
  rate->set_f(1.0);
  return request;
}

inline Frame<LoadPart> MakeLoad(const Sender& sender,
                                const std::vector<TensorSlice>& slices,
                                absl::Cord data, const std::string& slot = "",
                                int64_t epoch = 1) {
  Frame<LoadPart> request;
  *request.header.mutable_sender() = sender;
  *request.header.mutable_fence() = MakeFence(epoch);
  request.header.set_slot(slot);
  for (const TensorSlice& slice : slices) {
    *request.header.add_slices() = slice;
  }
  request.data = std::move(data);
  return request;
}

inline SealRequest MakeSeal(const Sender& sender, int64_t epoch = 1) {
  SealRequest request;
  *request.mutable_sender() = sender;
  *request.mutable_fence() = MakeFence(epoch);
  return request;
}

inline PullRequest MakePull(const Sender& sender,
                            const std::vector<TensorSlice>& slices,
                            int64_t epoch = 1) {
  PullRequest request;
  *request.mutable_sender() = sender;
  *request.mutable_fence() = MakeFence(epoch);
  for (const TensorSlice& slice : slices) *request.add_slices() = slice;
  return request;
}

inline Frame<PushPart> MakePush(const Sender& sender, int64_t step,
                                const std::vector<TensorSlice>& slices,
                                absl::Cord data, int32_t part = 0,
                                int32_t parts = 1) {
  Frame<PushPart> request;
  *request.header.mutable_sender() = sender;
  *request.header.mutable_fence() = MakeFence();
  request.header.set_step(step);
  request.header.set_part(part);
  request.header.set_parts(parts);
  for (const TensorSlice& slice : slices) {
    *request.header.add_slices() = slice;
  }
  request.data = std::move(data);
  return request;
}

inline ReadSnapshotRequest MakeRead(const Sender& sender, uint64_t snapshot,
                                    const TensorSlice& slice,
                                    const std::string& slot = "") {
  ReadSnapshotRequest request;
  *request.mutable_sender() = sender;
  *request.mutable_fence() = MakeFence();
  request.set_snapshot(snapshot);
  request.set_slot(slot);
  *request.add_slices() = slice;
  return request;
}

}  // namespace muster

#endif  // TESTS_PS_SERVER_SHARD_SHARD_REQUESTS_H_
