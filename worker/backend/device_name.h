#ifndef WORKER_BACKEND_DEVICE_NAME_H_
#define WORKER_BACKEND_DEVICE_NAME_H_

#include <string>

#include "absl/strings/string_view.h"

namespace muster {

// A device is called BACKEND:INDEX, "cpu:1".

// "cpu" and 1 of "cpu:1"; -1 if there is no such index.
std::string BackendOfDevice(absl::string_view device);
int IndexOfDevice(absl::string_view device);

// The name of a device, or of a backend, that is written as in TensorFlow, or
// as here: of "/cpu:0", "/device:GPU:0" and "gpu:0" it is "cpu:0", "cuda:0" and
// "cuda:0". What is no such name stays as it is.
std::string CanonicalDevice(absl::string_view text);

}  // namespace muster

#endif  // WORKER_BACKEND_DEVICE_NAME_H_
