#include "worker/input/input_threads.h"

#include <algorithm>

#include "worker/input/data_set/data_set_registry.h"

namespace muster {
namespace {

// Where nobody has asked for more: images for one model seldom want more cores.
constexpr int kMostByDefault = 8;

}  // namespace

int InputThreads(const InputSpec& spec, int compute_threads) {
  if (spec.threads() > 0) return static_cast<int>(spec.threads());
  const auto type = DataSetRegistry::Find(spec.type());
  const bool decodes = type.ok() && type->decodes;
  if (!decodes && spec.map().empty()) return 1;
  return std::clamp(compute_threads, 1, kMostByDefault);
}

}  // namespace muster
