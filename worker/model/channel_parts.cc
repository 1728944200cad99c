#include "worker/model/channel_parts.h"

#include <variant>
#include <vector>

#include "worker/backend/operation.h"

namespace muster {
namespace {

struct FindChannelFields {
  ChannelFields operator()(Conv2dDesc& desc) const {
    if (desc.groups != 1) return {};
    return {&desc.src_channels, &desc.dst_channels, &desc.has_bias, &desc.relu};
  }
  ChannelFields operator()(DenseDesc& desc) const {
    return {&desc.src_features, &desc.dst_features, &desc.has_bias, &desc.relu};
  }
  template <typename Desc>
  ChannelFields operator()(Desc& /*desc*/) const {
    return {};
  }
};

struct Narrow {
  const Shape& src;
  int count;
  int parts;

  bool operator()(BatchNormStep& step) const {
    step.desc.channels = step.desc.channels / parts * count;
    return true;
  }
  bool operator()(ActivationDesc& /*desc*/) const { return true; }
  bool operator()(DropoutDesc& desc) const {
    desc.shape = ShapeOfChannels(desc.shape, count, parts);
    return true;
  }
  bool operator()(PoolDesc& desc) const {
    desc.channels = desc.channels / parts * count;
    return true;
  }
  bool operator()(ReshapeDesc& desc) const {
    if (desc.shape.dim(0) != src.dim(0) || desc.shape.dim(1) % parts != 0) {
      return false;
    }
    desc.shape = ShapeOfChannels(desc.shape, count, parts);
    return true;
  }
  template <typename Desc>
  bool operator()(Desc& /*desc*/) const {
    return false;
  }
};

}  // namespace

ChannelFields ChannelFieldsOf(OperationDesc* desc) {
  return std::visit(FindChannelFields(), *desc);
}

Shape ShapeOfChannels(const Shape& whole, int count, int parts) {
  std::vector<int64_t> dims(whole.dims().begin(), whole.dims().end());
  dims[1] = dims[1] / parts * count;
  // No larger than one that is a Shape.
  return *Shape::Create(dims);
}

bool NarrowToChannels(const Shape& src, int count, int parts,
                      OperationDesc* desc) {
  return std::visit(Narrow{src, count, parts}, *desc);
}

}  // namespace muster
