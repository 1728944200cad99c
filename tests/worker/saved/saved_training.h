#ifndef TESTS_WORKER_SAVED_SAVED_TRAINING_H_
#define TESTS_WORKER_SAVED_SAVED_TRAINING_H_

#include <string>
#include <vector>

#include "tests/worker/task/local_training.h"
#include "worker/task/saved_model.h"

namespace muster {

// Three noiseless numbers of two columns.
inline constexpr char kRegression[] = R"pb(
  model {
    name: "linear_regression"
    input_shape: [ 2 ]
    layer {
      name: "output"
      type: "dense"
      attr { name: "units" i: 1 }
    }
    layer { name: "loss" type: "mean_squared_error" }
  }
  optimizer {
    name: "momentum"
    attr { name: "learning_rate" f: 0.05 }
  }
  stop { steps: 200 }
)pb";

inline constexpr char kClassifier[] = R"pb(
  model {
    name: "softmax_regression"
    input_shape: [ 2 ]
    layer {
      name: "output"
      type: "dense"
      attr { name: "units" i: 2 }
    }
    layer { name: "loss" type: "softmax_cross_entropy" }
  }
  optimizer {
    name: "momentum"
    attr { name: "learning_rate" f: 0.05 }
  }
  stop { steps: 50 }
)pb";

// Trainings on the tables of a folder of the test's own, whose models are used
// afterwards.
class SavedTraining : public LocalTraining {
 protected:
  void SetUp() override;

  // A file of the data, train.csv or test.csv.
  void Write(const std::string& name, const std::string& content);

  // Returns the exit code; `more` are further overrides.
  int TrainIn(const std::string& train_dir, const std::string& training,
              const std::vector<std::string>& more = {});

  // The options of a training's model.
  SavedModel::Options Model(const std::string& training,
                            const std::vector<std::string>& more = {});

  std::string dir_;
  std::vector<std::string> data_;
};

}  // namespace muster

#endif  // TESTS_WORKER_SAVED_SAVED_TRAINING_H_
