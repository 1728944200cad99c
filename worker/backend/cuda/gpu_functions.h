// The functions of NVIDIA's libraries that this backend calls, as values: the
// real ones are looked up when the program runs (gpu_libraries.h), so that it
// starts where there are none, and tests put others in their place. Nothing
// here calls a function of these libraries but through such a table.
#ifndef WORKER_BACKEND_CUDA_GPU_FUNCTIONS_H_
#define WORKER_BACKEND_CUDA_GPU_FUNCTIONS_H_

#include <functional>

#include "cublasLt.h"
#include "cuda_runtime_api.h"
#include "cudnn.h"
#include "nccl.h"

namespace muster::gpu_functions {

// cuda_runtime.h, which nccl.h includes, has other functions of these names.
inline cudaError_t GraphInstantiate(cudaGraphExec_t* executable,
                                    cudaGraph_t graph,
                                    unsigned long long flags) {  // NOLINT
  return cudaGraphInstantiate(executable, graph, flags);
}
inline cudaError_t LaunchKernel(const void* function, dim3 blocks, dim3 threads,
                                void** arguments, size_t shared_bytes,
                                cudaStream_t stream) {
  return cudaLaunchKernel(function, blocks, threads, arguments, shared_bytes,
                          stream);
}
inline cudaError_t Malloc(void** memory, size_t bytes) {
  return cudaMalloc(memory, bytes);
}

}  // namespace muster::gpu_functions

// X(member, symbol) for every function.
#define MUSTER_CUDA_FUNCTIONS(X)                       \
  X(DriverGetVersion, cudaDriverGetVersion)            \
  X(EventCreateWithFlags, cudaEventCreateWithFlags)    \
  X(EventDestroy, cudaEventDestroy)                    \
  X(EventElapsedTime, cudaEventElapsedTime)            \
  X(EventRecord, cudaEventRecord)                      \
  X(EventSynchronize, cudaEventSynchronize)            \
  X(Free, cudaFree)                                    \
  X(GetDeviceCount, cudaGetDeviceCount)                \
  X(GetDeviceProperties, cudaGetDeviceProperties)      \
  X(GetErrorString, cudaGetErrorString)                \
  X(GetLastError, cudaGetLastError)                    \
  X(GraphDestroy, cudaGraphDestroy)                    \
  X(GraphExecDestroy, cudaGraphExecDestroy)            \
  X(GraphInstantiate, gpu_functions::GraphInstantiate) \
  X(GraphLaunch, cudaGraphLaunch)                      \
  X(HostRegister, cudaHostRegister)                    \
  X(HostUnregister, cudaHostUnregister)                \
  X(LaunchKernel, gpu_functions::LaunchKernel)         \
  X(Malloc, gpu_functions::Malloc)                     \
  X(MemcpyAsync, cudaMemcpyAsync)                      \
  X(MemGetInfo, cudaMemGetInfo)                        \
  X(MemsetAsync, cudaMemsetAsync)                      \
  X(SetDevice, cudaSetDevice)                          \
  X(StreamBeginCapture, cudaStreamBeginCapture)        \
  X(StreamCreateWithFlags, cudaStreamCreateWithFlags)  \
  X(StreamDestroy, cudaStreamDestroy)                  \
  X(StreamEndCapture, cudaStreamEndCapture)            \
  X(StreamSynchronize, cudaStreamSynchronize)          \
  X(StreamWaitEvent, cudaStreamWaitEvent)

#define MUSTER_CUDNN_FUNCTIONS(X)                                              \
  X(ConvolutionBackwardData, cudnnConvolutionBackwardData)                     \
  X(ConvolutionBackwardFilter, cudnnConvolutionBackwardFilter)                 \
  X(ConvolutionBiasActivationForward, cudnnConvolutionBiasActivationForward)   \
  X(ConvolutionForward, cudnnConvolutionForward)                               \
  X(Create, cudnnCreate)                                                       \
  X(CreateActivationDescriptor, cudnnCreateActivationDescriptor)               \
  X(CreateConvolutionDescriptor, cudnnCreateConvolutionDescriptor)             \
  X(CreateFilterDescriptor, cudnnCreateFilterDescriptor)                       \
  X(CreateTensorDescriptor, cudnnCreateTensorDescriptor)                       \
  X(Destroy, cudnnDestroy)                                                     \
  X(DestroyActivationDescriptor, cudnnDestroyActivationDescriptor)             \
  X(DestroyConvolutionDescriptor, cudnnDestroyConvolutionDescriptor)           \
  X(DestroyFilterDescriptor, cudnnDestroyFilterDescriptor)                     \
  X(DestroyTensorDescriptor, cudnnDestroyTensorDescriptor)                     \
  X(GetConvolutionBackwardDataAlgorithm_v7,                                    \
    cudnnGetConvolutionBackwardDataAlgorithm_v7)                               \
  X(GetConvolutionBackwardDataWorkspaceSize,                                   \
    cudnnGetConvolutionBackwardDataWorkspaceSize)                              \
  X(GetConvolutionBackwardFilterAlgorithm_v7,                                  \
    cudnnGetConvolutionBackwardFilterAlgorithm_v7)                             \
  X(GetConvolutionBackwardFilterWorkspaceSize,                                 \
    cudnnGetConvolutionBackwardFilterWorkspaceSize)                            \
  X(GetConvolutionForwardAlgorithm_v7, cudnnGetConvolutionForwardAlgorithm_v7) \
  X(GetConvolutionForwardWorkspaceSize,                                        \
    cudnnGetConvolutionForwardWorkspaceSize)                                   \
  X(GetErrorString, cudnnGetErrorString)                                       \
  X(GetVersion, cudnnGetVersion)                                               \
  X(SetActivationDescriptor, cudnnSetActivationDescriptor)                     \
  X(SetConvolution2dDescriptor, cudnnSetConvolution2dDescriptor)               \
  X(SetConvolutionGroupCount, cudnnSetConvolutionGroupCount)                   \
  X(SetConvolutionMathType, cudnnSetConvolutionMathType)                       \
  X(SetFilter4dDescriptor, cudnnSetFilter4dDescriptor)                         \
  X(SetStream, cudnnSetStream)                                                 \
  X(SetTensor4dDescriptor, cudnnSetTensor4dDescriptor)

#define MUSTER_CUBLAS_FUNCTIONS(X)                                      \
  X(Create, cublasLtCreate)                                             \
  X(Destroy, cublasLtDestroy)                                           \
  X(GetStatusString, cublasLtGetStatusString)                           \
  X(GetVersion, cublasLtGetVersion)                                     \
  X(Matmul, cublasLtMatmul)                                             \
  X(MatmulAlgoGetHeuristic, cublasLtMatmulAlgoGetHeuristic)             \
  X(MatmulDescCreate, cublasLtMatmulDescCreate)                         \
  X(MatmulDescDestroy, cublasLtMatmulDescDestroy)                       \
  X(MatmulDescSetAttribute, cublasLtMatmulDescSetAttribute)             \
  X(MatmulPreferenceCreate, cublasLtMatmulPreferenceCreate)             \
  X(MatmulPreferenceDestroy, cublasLtMatmulPreferenceDestroy)           \
  X(MatmulPreferenceSetAttribute, cublasLtMatmulPreferenceSetAttribute) \
  X(MatrixLayoutCreate, cublasLtMatrixLayoutCreate)                     \
  X(MatrixLayoutDestroy, cublasLtMatrixLayoutDestroy)

#define MUSTER_NCCL_FUNCTIONS(X)  \
  X(AllReduce, ncclAllReduce)     \
  X(CommAbort, ncclCommAbort)     \
  X(CommDestroy, ncclCommDestroy) \
  X(CommInitAll, ncclCommInitAll) \
  X(GetErrorString, ncclGetErrorString)

namespace muster {

#define MUSTER_FUNCTION_MEMBER(member, symbol) \
  std::function<decltype(symbol)> member;

// The CUDA runtime: cudaX is X.
struct CudaFunctions {
  MUSTER_CUDA_FUNCTIONS(MUSTER_FUNCTION_MEMBER)
};

// cudnnX is X.
struct CudnnFunctions {
  MUSTER_CUDNN_FUNCTIONS(MUSTER_FUNCTION_MEMBER)
};

// cublasLtX is X.
struct CublasFunctions {
  MUSTER_CUBLAS_FUNCTIONS(MUSTER_FUNCTION_MEMBER)
};

// ncclX is X.
struct NcclFunctions {
  MUSTER_NCCL_FUNCTIONS(MUSTER_FUNCTION_MEMBER)
};

#undef MUSTER_FUNCTION_MEMBER

struct GpuFunctions {
  CudaFunctions cuda;
  CudnnFunctions cudnn;
  CublasFunctions cublas;
  // Empty members if NCCL is not installed: only towers on several GPUs want
  // it.
  NcclFunctions nccl;
};

}  // namespace muster

#endif  // WORKER_BACKEND_CUDA_GPU_FUNCTIONS_H_
