#include "tests/worker/step/update_device.h"

namespace muster {

const char kUpdateDevice[] = "cuda:0";

}  // namespace muster
