#ifndef WORKER_INPUT_MAP_MAP_STAGE_H_
#define WORKER_INPUT_MAP_MAP_STAGE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/registry.h"
#include "common/config/attributes.h"
#include "worker/input/map/row_random.h"
#include "worker/input/map/row_spec.h"

namespace muster {

// A map of one row's values, for rows of one type and shape. It knows no other
// rows, no labels and no batches. Immutable, thread-safe.
class MapStage {
 public:
  virtual ~MapStage() = default;

  const RowSpec& output() const { return output_; }

  // Makes `dst`, a row of output(), of `src`, a row of the input spec.
  // Allocates nothing but for a thread's first row. `random` has the numbers of
  // this row and stage; without it (null), as in evaluation, a random stage
  // does what stands for all that it might have done: a crop is the middle one,
  // nothing is flipped or cut out.
  // REQUIRES: the rows have the sizes of the specs, are aligned for their types
  // and do not overlap. Errors: InvalidArgument for values that the stage
  // cannot take; `dst` is undefined then.
  virtual absl::Status Apply(absl::Span<const char> src, absl::Span<char> dst,
                             RowRandom* random) const = 0;

 protected:
  explicit MapStage(RowSpec output) : output_(std::move(output)) {}

 private:
  const RowSpec output_;
};

// One kind of stage, as its source file registers it.
struct MapStageType {
  // One line for the list of all stages.
  std::string help;
  std::vector<AttrDef> attributes;
  // REQUIRES: CheckRowSpec(input) is OK. Errors: InvalidArgument that says what
  // was wanted and what was found; MapChain adds the stage's place and type.
  absl::StatusOr<std::unique_ptr<MapStage>> (*create)(
      const Attributes& attributes, const RowSpec& input);
};

struct MapStageTag {
  static constexpr char kKind[] = "map stage";
};
using MapStageRegistry = Registry<MapStageTag, MapStageType>;

// Every registered stage with its attributes.
std::string DescribeMapStages();

}  // namespace muster

#endif  // WORKER_INPUT_MAP_MAP_STAGE_H_
