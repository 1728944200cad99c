#ifndef TESTS_WORKER_BACKEND_CUDA_FAKE_CONVOLUTION_H_
#define TESTS_WORKER_BACKEND_CUDA_FAKE_CONVOLUTION_H_

#include <array>
#include <cstdint>
#include <vector>

#include "cudnn.h"

namespace muster {

// The arithmetic of cuDNN's convolutions: cross-correlation, no dilation. A
// value; its functions read and write the memory that they are given at once.
struct FakeConvolution {
  // A tensor [N, C, H, W] or a filter [K, C, R, S], packed in one of two
  // orders.
  struct Tensor {
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    cudnnTensorFormat_t format = CUDNN_TENSOR_NCHW;
    std::array<int64_t, 4> sizes = {};

    int64_t elements() const {
      return sizes[0] * sizes[1] * sizes[2] * sizes[3];
    }
    // Where in memory the element is, in elements.
    int64_t OffsetOf(int64_t n, int64_t c, int64_t h, int64_t w) const;
    // In the order of the sizes, as float32.
    std::vector<float> Load(const void* memory) const;
    // memory = alpha * values + beta * memory, which is not read if beta is 0.
    void Store(const std::vector<float>& values, float alpha, float beta,
               void* memory) const;
  };
  struct Window {
    int pad_h = 0;
    int pad_w = 0;
    int stride_h = 1;
    int stride_w = 1;
  };

  Tensor x;
  Tensor w;
  Tensor y;
  Window window;
  // The factors are rounded to TF32.
  bool tf32 = false;
  // The groups of the channels of x and y; w has those of one group of x.
  int64_t groups = 1;

  // The sizes of y with which the others fit; zero or less if nothing fits.
  std::array<int64_t, 4> YSizes() const;

  std::vector<float> Forward(const void* x_memory, const void* w_memory) const;
  std::vector<float> BackwardData(const void* w_memory,
                                  const void* dy_memory) const;
  std::vector<float> BackwardFilter(const void* x_memory,
                                    const void* dy_memory) const;

 private:
  std::vector<float> LoadFactor(const Tensor& tensor, const void* memory) const;
  template <typename Visit>
  void ForEachProduct(Visit visit) const;
};

}  // namespace muster

#endif  // TESTS_WORKER_BACKEND_CUDA_FAKE_CONVOLUTION_H_
