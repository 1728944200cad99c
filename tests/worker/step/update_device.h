#ifndef TESTS_WORKER_STEP_UPDATE_DEVICE_H_
#define TESTS_WORKER_STEP_UPDATE_DEVICE_H_

namespace muster {

// A device that updates parameters, of a backend that this binary registers:
// each links a definition of its own.
extern const char kUpdateDevice[];

}  // namespace muster

#endif  // TESTS_WORKER_STEP_UPDATE_DEVICE_H_
