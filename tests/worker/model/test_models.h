// Shared by the tests of the model: models from text, backends by name, and
// batches made of numbers.
#ifndef TESTS_WORKER_MODEL_TEST_MODELS_H_
#define TESTS_WORKER_MODEL_TEST_MODELS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "proto/training.pb.h"
#include "worker/backend/backend.h"
#include "worker/executor/compiled_model.h"
#include "worker/input/batch.h"

namespace muster {

// Ends the test binary if the text is not a ModelSpec.
ModelSpec ParseModel(const std::string& text);

// For ParseModel, with every use that a step makes of a parameter: a
// convolution, batch norm with its averages, a dense layer whose weights
// another one reads again, and a penalty.
extern const char kManyUsesModel[];
inline constexpr int64_t kManyUsesElements = 36;
inline constexpr int64_t kManyUsesClasses = 3;

// worker/model/zoo/NAME.textproto. Ends the test binary if it cannot be read.
TrainingSpec LoadZooModel(const std::string& name);

// "device_of_cpu" is a FakeDevice with cpu's primitives. Ends the test binary
// if there is none of that name.
std::unique_ptr<Backend> MakeBackend(const std::string& name);

// Uniform examples in [0, 1) and labels, as functions of `seed`.
Batch MakeBatch(int64_t rows, int64_t example_elements, int64_t classes,
                uint64_t seed);

// The same with targets, uniform in [0, 1), in the place of labels.
Batch MakeTargetBatch(int64_t rows, int64_t example_elements,
                      int64_t num_targets, uint64_t seed);

// Ends the test binary if the model cannot be compiled.
std::unique_ptr<CompiledModel> Compile(const ModelSpec& spec,
                                       const CompileOptions& options);

}  // namespace muster

#endif  // TESTS_WORKER_MODEL_TEST_MODELS_H_
