#include "worker/layer/layer.h"

#include "common/config/describe_types.h"

namespace muster {

std::string DescribeLayers() { return DescribeTypes<LayerRegistry>(); }

}  // namespace muster
