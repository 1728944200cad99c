#ifndef WORKER_BACKEND_CUDA_HOST_KERNEL_H_
#define WORKER_BACKEND_CUDA_HOST_KERNEL_H_

#include <cstddef>
#include <functional>
#include <tuple>
#include <utility>

namespace muster {

// A kernel as Launch hands it to LaunchKernel, no device function, where g++
// has compiled the kernel: in tests, whose LaunchKernel calls it once for each
// thread of the grid.
class HostKernel {
 public:
  virtual ~HostKernel() = default;
  // The work of one thread, with a copy of the arguments that `arguments` point
  // to.
  virtual std::function<void()> Bind(void** arguments) const = 0;
};

template <typename... Parameters>
class TypedHostKernel : public HostKernel {
 public:
  explicit TypedHostKernel(void (*kernel)(Parameters...)) : kernel_(kernel) {}

  std::function<void()> Bind(void** arguments) const override {
    return Copy(arguments, std::index_sequence_for<Parameters...>());
  }

 private:
  template <size_t... I>
  std::function<void()> Copy(void** arguments,
                             std::index_sequence<I...>) const {
    return [kernel = kernel_, copies = std::tuple<Parameters...>(
                                  *static_cast<Parameters*>(arguments[I])...)] {
      std::apply(kernel, copies);
    };
  }

  void (*const kernel_)(Parameters...);
};

}  // namespace muster

#endif  // WORKER_BACKEND_CUDA_HOST_KERNEL_H_
