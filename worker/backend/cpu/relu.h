#ifndef WORKER_BACKEND_CPU_RELU_H_
#define WORKER_BACKEND_CPU_RELU_H_

#include <memory>

#include "worker/backend/memory_layout.h"
#include "worker/backend/primitive.h"

namespace muster {

// ReLU forward, in any layout. Our own: oneDNN's, by itself and as the end of a
// convolution or product, makes 0 of NaN.
std::unique_ptr<Primitive> MakeRelu(int threads, const MemoryLayout& layout);

// `primitive`, then ReLU over its dst. REQUIRES: a forward primitive with one
// src.
std::unique_ptr<Primitive> WithRelu(int threads,
                                    std::unique_ptr<Primitive> primitive);

}  // namespace muster

#endif  // WORKER_BACKEND_CPU_RELU_H_
