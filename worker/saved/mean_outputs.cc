#include "worker/saved/mean_outputs.h"

#include <algorithm>
#include <cmath>

namespace muster {
namespace {

// Returns log(sum(exp(values))).
template <typename T>
double LogSumExp(absl::Span<const T> values) {
  const double largest = *std::max_element(values.begin(), values.end());
  // Minus infinity from itself is not a number.
  if (std::isinf(largest)) return largest;
  double sum = 0;
  for (const double value : values) sum += std::exp(value - largest);
  return largest + std::log(sum);
}

double LogMeanExp(const std::vector<double>& values) {
  return LogSumExp(absl::MakeConstSpan(values)) -
         std::log(static_cast<double>(values.size()));
}

// Returns log(sigmoid(x)).
double LogSigmoid(double x) {
  return std::min(x, 0.0) - std::log1p(std::exp(-std::abs(x)));
}

// The functions below make `dst`, a row, from that row of each model.
using Rows = std::vector<absl::Span<const float>>;

void MeanOfClasses(const Rows& rows, absl::Span<float> dst) {
  std::vector<double> all(rows.size()), one(rows.size());
  for (size_t m = 0; m < rows.size(); ++m) all[m] = LogSumExp(rows[m]);
  for (size_t k = 0; k < dst.size(); ++k) {
    for (size_t m = 0; m < rows.size(); ++m) one[m] = rows[m][k] - all[m];
    dst[k] = static_cast<float>(LogMeanExp(one));
  }
}

void MeanOfSigmoids(const Rows& rows, absl::Span<float> dst) {
  std::vector<double> yes(rows.size()), no(rows.size());
  for (size_t k = 0; k < dst.size(); ++k) {
    for (size_t m = 0; m < rows.size(); ++m) {
      yes[m] = LogSigmoid(rows[m][k]);
      no[m] = LogSigmoid(-rows[m][k]);
    }
    dst[k] = static_cast<float>(LogMeanExp(yes) - LogMeanExp(no));
  }
}

void MeanOfNumbers(const Rows& rows, absl::Span<float> dst) {
  for (size_t k = 0; k < dst.size(); ++k) {
    double sum = 0;
    for (const absl::Span<const float> row : rows) sum += row[k];
    dst[k] = static_cast<float>(sum / static_cast<double>(rows.size()));
  }
}

void MeanOfRow(Prediction prediction, const Rows& rows, absl::Span<float> dst) {
  switch (prediction) {
    case Prediction::kSoftmax:
      return MeanOfClasses(rows, dst);
    case Prediction::kSigmoid:
      return MeanOfSigmoids(rows, dst);
    case Prediction::kIdentity:
      return MeanOfNumbers(rows, dst);
  }
}

}  // namespace

void MeanOutputs(Prediction prediction, int64_t num_outputs,
                 const std::vector<absl::Span<const float>>& outputs,
                 absl::Span<float> dst) {
  if (outputs.size() == 1) {
    std::copy(outputs[0].begin(), outputs[0].end(), dst.begin());
    return;
  }
  Rows rows(outputs.size());
  for (size_t at = 0; at < dst.size(); at += num_outputs) {
    for (size_t m = 0; m < outputs.size(); ++m) {
      rows[m] = outputs[m].subspan(at, num_outputs);
    }
    MeanOfRow(prediction, rows, dst.subspan(at, num_outputs));
  }
}

}  // namespace muster
