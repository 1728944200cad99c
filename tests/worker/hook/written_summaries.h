#ifndef TESTS_WORKER_HOOK_WRITTEN_SUMMARIES_H_
#define TESTS_WORKER_HOOK_WRITTEN_SUMMARIES_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/summary/write_summary.h"
#include "proto/summary.pb.h"

namespace muster {

// The points that a hook wrote.
struct WrittenSummaries {
  // In order: the step, and the tensor of each tag.
  struct Point {
    int64_t step;
    std::map<std::string, SummaryTensor> tensors;
    // Of each tag, for its plugin.
    std::map<std::string, std::string> contents;
  };
  std::vector<Point> points;

  // Appends to `points`; this outlives it.
  WriteSummary Writer() {
    return [this](int64_t step, const Summary& summary) {
      Point point{step, {}, {}};
      for (const Summary::Value& value : summary.value()) {
        point.contents[value.tag()] = value.metadata().plugin_data().content();
        point.tensors[value.tag()] = value.tensor();
      }
      points.push_back(std::move(point));
    };
  }

  // A scalar's value; -12345 if it was not written.
  double Scalar(size_t point, const std::string& tag) const {
    if (point >= points.size()) return -12345;
    const auto it = points[point].tensors.find(tag);
    if (it == points[point].tensors.end()) return -12345;
    return it->second.float_val_size() == 1 ? it->second.float_val(0) : -12345;
  }

  // Values that a histogram counts; -12345 if it was not written.
  double HistogramCount(size_t point, const std::string& tag) const {
    if (point >= points.size()) return -12345;
    const auto it = points[point].tensors.find(tag);
    if (it == points[point].tensors.end()) return -12345;
    double count = 0;
    for (int i = 2; i < it->second.double_val_size(); i += 3) {
      count += it->second.double_val(i);
    }
    return count;
  }
};

}  // namespace muster

#endif  // TESTS_WORKER_HOOK_WRITTEN_SUMMARIES_H_
