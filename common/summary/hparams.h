#ifndef COMMON_SUMMARY_HPARAMS_H_
#define COMMON_SUMMARY_HPARAMS_H_

#include "absl/strings/string_view.h"
#include "proto/hparams.pb.h"
#include "proto/summary.pb.h"

namespace muster {

// Each adds what TensorBoard's HPARAMS page reads of a run, in the form that it
// writes itself: metadata of the plugin "hparams" at a tensor of no elements.
// TensorBoard keeps the first of two in a run.
void AddHparamsStart(const HparamsSessionStart& start, Summary* summary);
void AddHparamsEnd(const HparamsSessionEnd& end, Summary* summary);

// A setting's text as a number or a bool, where it is one.
HparamValue HparamOf(absl::string_view text);
HparamValue HparamOf(double number);

}  // namespace muster

#endif  // COMMON_SUMMARY_HPARAMS_H_
