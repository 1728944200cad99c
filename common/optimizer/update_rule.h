#ifndef COMMON_OPTIMIZER_UPDATE_RULE_H_
#define COMMON_OPTIMIZER_UPDATE_RULE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/codec/value_format.h"
#include "common/config/attributes.h"
#include "common/optimizer/learning_rate.h"
#include "common/optimizer/update_constants.h"
#include "proto/training.pb.h"

namespace muster {

// One slot of a rule: a value for each element of a trainable parameter.
template <typename T>
struct SlotDefOf {
  // Part of a checkpoint's tensor names: "conv1/weights/m".
  std::string name;
  // Every element's, before the first update.
  T initial_value;
};

// Which update of a block an Apply makes.
struct BlockUpdate {
  // Updates of this block including this one, 1 at first. Schedules see t - 1,
  // the completed updates (or `updates`); Adam's bias correction sees t.
  int64_t t = 1;
  // Multiplies the learning rate (not the gradient) of this update alone; > 0.
  // 1 changes nothing, not even a bit.
  double rate_factor = 1;
  // The completed updates that schedules see instead, and saw at the block's
  // update before: those of the model, where a block is in few of them (a row
  // of a table). -1: t - 1, and one less.
  int64_t updates = -1;
  int64_t updates_before = -1;

  // The completed updates that schedules see now, and those that they saw at
  // the block's update before this one (at the first one: the same).
  int64_t completed() const { return updates < 0 ? t - 1 : updates; }
  int64_t completed_before() const {
    if (t == 1) return completed();
    return updates_before < 0 ? completed() - 1 : updates_before;
  }

  // The learning rate of this update.
  double RateOf(const LearningRate& learning_rate) const {
    return learning_rate.At(completed()) * rate_factor;
  }
};

// How a gradient changes a parameter. T is float for the rules that train,
// float or double for their reference twins.
//
// Immutable and thread-safe: many threads may apply one rule, each to its own
// elements. Elementwise: what happens to one element does not depend on where
// in a call it stands, so a tensor may be cut anywhere. Deterministic: the
// same bits on every machine that computes in IEEE arithmetic.
template <typename T>
class UpdateRuleOf {
 public:
  virtual ~UpdateRuleOf() = default;

  // In the order in which Apply wants them; empty for plain SGD.
  virtual absl::Span<const SlotDefOf<T>> slots() const = 0;

  // Updates n elements of one block, and their slots, by one gradient.
  //   gradient [n], parameter [n], slots[i] [n] in the order of slots().
  // REQUIRES: update.t >= 1, n >= 0, pointers aligned as T wants it (no more),
  // no overlap.
  virtual void Apply(const BlockUpdate& update, const T* gradient, T* parameter,
                     absl::Span<T* const> slots, int64_t n) const = 0;
};

using SlotDef = SlotDefOf<float>;

// A rule that trains: it also takes a gradient as it came over the wire, and
// hands out what it makes.
class UpdateRule : public UpdateRuleOf<float> {
 public:
  // The operands of an update: n elements of each.
  struct Elements {
    EncodedValues gradient;
    float* parameter = nullptr;
    // In the order of slots().
    absl::Span<float* const> slots;
    int64_t n = 0;
    // The parameter's new values are written here, too, while they are in the
    // first-level cache; null: nowhere. A float32 gradient may lie here.
    float* publish_to = nullptr;
  };

  // Apply of the decoded gradient, to the bit. It is decoded in registers, so
  // that a shorter one takes less time, not more.
  virtual void ApplyEncoded(const BlockUpdate& update,
                            const Elements& elements) const = 0;

  // One update of a short block, a table's row: n parameters, and behind them n
  // of each slot.
  struct RowUpdate {
    BlockUpdate update;
    const float* gradient = nullptr;
    float* row = nullptr;
  };
  // Apply of each, to the bit. Rows with the same numbers share the time that
  // it takes to compute the constants: two powers for Adam. REQUIRES: all have
  // the same rate factor and `updates`, which is not -1.
  virtual void ApplyToRows(absl::Span<const RowUpdate> rows,
                           int64_t n) const = 0;

  // The numbers that Apply of this update goes by, for whoever makes it
  // elsewhere: always of the same alternative. REQUIRES: update.t >= 1.
  virtual UpdateConstants ConstantsAt(const BlockUpdate& /*update*/) const {
    return std::monostate();
  }
};

// Makes the vectorized rule that `spec` names. Errors: NotFound for an unknown
// name (the nearest and all known ones are listed); InvalidArgument naming the
// rule and the attribute or schedule field, or a learning_rate_scaling that was
// not carried out (see ScaleLearningRate). Link :optimizers for the rules.
absl::StatusOr<std::unique_ptr<UpdateRule>> CreateUpdateRule(
    const OptimizerSpec& spec);

// The learning rate and its schedule, of whichever rule `spec` names. Errors:
// as CreateUpdateRule's.
absl::StatusOr<LearningRate> LearningRateOf(const OptimizerSpec& spec);

// Makes its reference twin: the same rule as a plain loop on T. The float twin
// agrees with CreateUpdateRule's rule to the bit; the double twin is the one
// that is compared with other frameworks. T is float or double.
template <typename T>
absl::StatusOr<std::unique_ptr<UpdateRuleOf<T>>> CreateReferenceRule(
    const OptimizerSpec& spec);

// The settings of the named rule, for --set and `musterctl list`; valid for
// ever. Errors: NotFound as above.
absl::StatusOr<absl::Span<const AttrDef>> UpdateRuleAttributes(
    absl::string_view name);

// All rules, sorted.
std::vector<std::string> UpdateRuleNames();

}  // namespace muster

#endif  // COMMON_OPTIMIZER_UPDATE_RULE_H_
