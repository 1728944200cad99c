#ifndef WORKER_INPUT_MAP_MAP_CHAIN_H_
#define WORKER_INPUT_MAP_MAP_CHAIN_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/tensor/aligned_buffer.h"
#include "proto/training.pb.h"
#include "worker/input/map/map_stage.h"
#include "worker/input/map/row_random.h"
#include "worker/input/map/row_spec.h"

namespace muster {

// One stage as a user writes it.
struct MapStageSpec {
  // A registered stage.
  std::string type;
  google::protobuf::RepeatedPtrField<Attr> attrs;
};

// Map stages one after the other:
//
//   ASSIGN_OR_RETURN(const MapChain chain, MapChain::Create(specs, stored));
//   MapChain::Scratch scratch = chain.MakeScratch();  // One for each thread.
//   RETURN_IF_ERROR(
//       chain.Apply(src, dst, RowRandom(seed, epoch, example), &scratch));
//
// Immutable, thread-safe. Without stages it copies.
class MapChain {
 public:
  // Memory for the rows between the stages, used by one thread at a time.
  // Movable, not copyable.
  class Scratch {
   private:
    friend class MapChain;
    explicit Scratch(size_t row_bytes) : even_(row_bytes), odd_(row_bytes) {}

    // Outputs of the stages with even and with odd numbers.
    AlignedBuffer even_;
    AlignedBuffer odd_;
  };

  // `input` are the rows as the reader has them. Errors: InvalidArgument, with
  // the number and type of the stage: unknown type or attribute, rows that it
  // cannot take, or rows that are too large for the memory.
  static absl::StatusOr<MapChain> Create(absl::Span<const MapStageSpec> specs,
                                         const RowSpec& input);

  MapChain(MapChain&&) = default;
  MapChain& operator=(MapChain&&) = default;

  const RowSpec& input() const { return input_; }
  const RowSpec& output() const {
    return links_.empty() ? input_ : links_.back().stage->output();
  }

  Scratch MakeScratch() const { return Scratch(scratch_bytes_); }

  // Makes `dst`, a row of output(), of `src`, a row of input(). Allocates
  // nothing, unless it fails. No `random`: MapStage::Apply with null.
  // REQUIRES: the rows are as MapStage::Apply wants them; `scratch` was made by
  // this chain. Errors: those of a stage, with its number and type; the caller
  // adds the row.
  absl::Status Apply(absl::Span<const char> src, absl::Span<char> dst,
                     const std::optional<RowRandom>& random,
                     Scratch* scratch) const;

 private:
  struct Link {
    // "map stage 2 of 3 ('resize')"
    std::string title;
    std::unique_ptr<const MapStage> stage;
  };

  explicit MapChain(const RowSpec& input) : input_(input) {}

  absl::Status Append(const MapStageSpec& spec, std::string title);

  RowSpec input_;
  std::vector<Link> links_;
  // The largest row between two stages.
  size_t scratch_bytes_ = 0;
};

}  // namespace muster

#endif  // WORKER_INPUT_MAP_MAP_CHAIN_H_
