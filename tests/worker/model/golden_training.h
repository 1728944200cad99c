// Trainings of the zoo's mnist_cnn and resnet20 whose losses PyTorch has
// computed in float64 (golden/losses.txt and golden/resnet20_losses.txt, made
// by the programs beside them).
#ifndef TESTS_WORKER_MODEL_GOLDEN_TRAINING_H_
#define TESTS_WORKER_MODEL_GOLDEN_TRAINING_H_

#include <string>
#include <vector>

#include "worker/backend/backend.h"

namespace muster {

constexpr int kGoldenSteps = 20;

// PyTorch's loss of each of kGoldenSteps steps; "sgd", "adam", ... of
// mnist_cnn.
std::vector<double> GoldenLosses(const std::string& rule);

// How many of them CI compares: all under momentum; the gradients under the
// other rules are the same code, and reference_rule_test has those rules' 20
// steps.
int ComparedSteps(const std::string& rule);

// Trains in T, which is the backend's dtype, and returns the loss of each step;
// fewer, with a failure of the test, if one fails. T: float or double.
template <typename T>
std::vector<double> TrainGolden(Backend* backend, const std::string& rule_name,
                                int steps);

// The same of resnet20, with momentum.
std::vector<double> GoldenResnetLosses();
template <typename T>
std::vector<double> TrainGoldenResnet(Backend* backend, int steps);

}  // namespace muster

#endif  // TESTS_WORKER_MODEL_GOLDEN_TRAINING_H_
