#ifndef WORKER_CLIENT_NAMESPACE_READER_H_
#define WORKER_CLIENT_NAMESPACE_READER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/cluster/placement.h"
#include "proto/parameter_service.pb.h"
#include "proto/tensor.pb.h"
#include "worker/client/shard_group.h"

namespace muster {

// The parameters that another namespace has on the same ps tasks, as they are
// now: its job may go on meanwhile, and each block is that of some instant.
//
//   ASSIGN_OR_RETURN(const NamespaceReader reader,
//                    NamespaceReader::Open(&shards, "teacher"));
//   for (const TensorDef& tensor : reader.tensors()) ...
//   RETURN_IF_ERROR(reader.Read(0, values));
//
// One thread.
class NamespaceReader {
 public:
  // Asks every ps task what the namespace has there. `shards`, whose epoch is
  // set (to any, if its sender has incarnation 0 and says no Hello), outlives
  // the reader. Errors: InvalidArgument for a namespace that is not there,
  // which names those that are; FailedPrecondition for one that has no whole
  // model (yet); Unimplemented, those of a transfer.
  static absl::StatusOr<NamespaceReader> Open(ShardGroup* shards,
                                              const std::string& space);

  // OK if ps tasks that have these know the namespace. Errors: Open's.
  static absl::Status CheckIsThere(
      const std::string& space, const std::vector<ListNamespacesReply>& lists);

  // Whole ones.
  const std::vector<TensorDef>& tensors() const { return tensors_; }
  // The names of its tables, whose rows are not read.
  const std::vector<std::string>& tables() const { return tables_; }
  // The epoch of the namespace's model.
  int64_t model_epoch() const { return model_epoch_; }

  // Reads a tensor, by its index. REQUIRES: `dst` has its elements. Errors:
  // Aborted (fenced) if the namespace has another model by now; those of a
  // transfer.
  absl::Status Read(int tensor, absl::Span<float> dst) const;

 private:
  NamespaceReader(ShardGroup* shards, std::string space)
      : shards_(*shards), space_(std::move(space)) {}

  // Adds the pieces that a ps task has.
  absl::Status Add(int ps, const ShardState& state);
  absl::Status CheckWhole() const;

  ShardGroup& shards_;
  std::string space_;
  int64_t model_epoch_ = 0;
  std::vector<TensorDef> tensors_;
  std::vector<std::string> tables_;
  // Where each is; not in order.
  Placement placement_;
};

}  // namespace muster

#endif  // WORKER_CLIENT_NAMESPACE_READER_H_
