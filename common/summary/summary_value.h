#ifndef COMMON_SUMMARY_SUMMARY_VALUE_H_
#define COMMON_SUMMARY_SUMMARY_VALUE_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/summary/histogram.h"
#include "proto/summary.pb.h"

namespace muster {

// Each adds one value to `summary` in the form that TensorBoard 2 writes
// itself: a tensor, and the metadata that name its plugin.

// A point of a curve: a float32 without dimensions, plugin "scalars".
void AddScalar(absl::string_view tag, double value, Summary* summary);

// A float64 [30, 3] of left, right, count, plugin "histograms".
void AddHistogram(absl::string_view tag, const Histogram& histogram,
                  Summary* summary);

// PNG files of one size, in pixels, plugin "images".
void AddImages(absl::string_view tag, int64_t width, int64_t height,
               absl::Span<const std::string> pngs, Summary* summary);

// UTF-8 in Markdown, plugin "text".
void AddText(absl::string_view tag, absl::string_view markdown,
             Summary* summary);

// `text` as a Markdown block that shows it as it is.
std::string MarkdownBlock(absl::string_view text);

}  // namespace muster

#endif  // COMMON_SUMMARY_SUMMARY_VALUE_H_
