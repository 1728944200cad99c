#ifndef TESTS_WORKER_BACKEND_CUDA_PRODUCT_TEST_H_
#define TESTS_WORKER_BACKEND_CUDA_PRODUCT_TEST_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/backend/cuda/fake_gpu.h"
#include "tests/worker/backend/primitive_run.h"
#include "worker/backend/backend.h"
#include "worker/backend/cuda/cuda_backend.h"

namespace muster {

// Convolution or dense on a fake card whose functions a test may replace.
class ProductTest : public testing::Test {
 protected:
  using Create = std::function<Backend::Created(Backend*)>;

  // One element that neither TF32 nor bf16 holds.
  static constexpr double kFine = 1 + 1.0 / 4096;

  std::unique_ptr<Backend> Make(bool tf32, bool bf16 = false) {
    BackendOptions options;
    options.gpu.tf32 = tf32;
    options.gpu.bf16 = bf16;
    auto backend = MakeCudaFactory([this](const std::string&) {
                     return &functions_;
                   }).create(options);
    EXPECT_THAT(backend, IsOk());
    return backend.ok() ? *std::move(backend) : nullptr;
  }

  // `create` makes a product of one factor by another.
  void ExpectRoundsFactorsAsPrecisionSays(const Create& create) {
    EXPECT_EQ(Product(Make(/*tf32=*/false).get(), create, kFine, 1), kFine);
    EXPECT_EQ(Product(Make(/*tf32=*/true).get(), create, kFine, 1), 1);
    EXPECT_EQ(Product(Make(/*tf32=*/true).get(), create, 1, kFine), 1);
    EXPECT_EQ(
        Product(Make(/*tf32=*/true, /*bf16=*/true).get(), create, 1.0 / 3, 1),
        171.0 / 512);
  }

  // Lets each call of making and executing a primitive fail in turn: each time
  // there is an error that says `what`, and nothing stays behind.
  void ExpectEveryFailureSays(const Create& create, const std::string& what) {
    const auto backend = Make(/*tf32=*/false, /*bf16=*/true);
    const auto make = [&] { return create(backend.get()).status(); };
    for (int64_t call = 1; FailsAt(call, what, make); ++call) {
    }
    const auto primitive = create(backend.get());
    ASSERT_THAT(primitive, IsOk());
    std::vector<std::unique_ptr<DeviceStreams::Buffer>> memory;
    const Operands operands = Allocate(backend.get(), **primitive, &memory);
    for (int64_t call = 1;
         FailsAt(call, what, [&] { return (*primitive)->Execute(operands); });
         ++call) {
    }
    EXPECT_THAT(backend->streams()->Synchronize(), IsOk());
  }

  static Operands Allocate(
      Backend* backend, const Primitive& primitive,
      std::vector<std::unique_ptr<DeviceStreams::Buffer>>* memory,
      int64_t offset = 0) {
    Operands operands;
    for (int i = 0; i < kNumOperands; ++i) {
      const Operand operand = static_cast<Operand>(i);
      if (!primitive.takes(operand)) continue;
      auto buffer = backend->streams()->Allocate(
          primitive.layout(operand).size_bytes + offset, "an operand");
      EXPECT_THAT(buffer, IsOk());
      operands.Set(operand, (*buffer)->data() + offset);
      memory->push_back(*std::move(buffer));
    }
    return operands;
  }

  FakeGpu gpu_;
  GpuFunctions functions_ = gpu_.functions();

 private:
  static double Product(Backend* backend, const Create& create, double src,
                        double weights) {
    PrimitiveRun run(backend, create(backend));
    if (!run.ok()) return 0;
    run.Set(Operand::kSrc, {src})
        .Set(Operand::kWeights, {weights})
        .Set(Operand::kBias, {0});
    EXPECT_THAT(run.Execute(), IsOk());
    return run.Get(Operand::kDst)[0];
  }

  // False if `act` makes fewer calls.
  bool FailsAt(int64_t call, const std::string& what,
               const std::function<absl::Status()>& act) {
    const std::string before = gpu_.Leaks();
    gpu_.calls().Reset(call);
    const absl::Status status = act();
    const std::string failed = gpu_.calls().failed();
    gpu_.calls().Reset(0);
    if (failed.empty()) {
      EXPECT_THAT(status, IsOk());
      return false;
    }
    // A failure to destroy something harms nobody.
    if (failed.find("Destroy") != std::string::npos) return true;
    EXPECT_THAT(status,
                StatusIs(absl::StatusCode::kInternal, testing::HasSubstr(what)))
        << failed;
    EXPECT_EQ(gpu_.Leaks(), before) << failed;
    return true;
  }
};

}  // namespace muster

#endif  // TESTS_WORKER_BACKEND_CUDA_PRODUCT_TEST_H_
