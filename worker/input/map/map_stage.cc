#include "worker/input/map/map_stage.h"

#include "common/config/describe_types.h"

namespace muster {

std::string DescribeMapStages() { return DescribeTypes<MapStageRegistry>(); }

}  // namespace muster
