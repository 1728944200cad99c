// The header of an update rule's source file, and nobody else's.
#ifndef COMMON_OPTIMIZER_UPDATE_RULE_REGISTRY_H_
#define COMMON_OPTIMIZER_UPDATE_RULE_REGISTRY_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "common/base/registry.h"
#include "common/codec/value_format.h"
#include "common/config/attributes.h"
#include "common/optimizer/learning_rate.h"
#include "common/optimizer/update_rule.h"

namespace muster {

// Makes a rule of type Rule, or one that is derived from it.
template <typename Rule>
using UpdateRuleFactory = std::unique_ptr<Rule> (*)(
    const Attributes& attributes, const LearningRate& learning_rate);

// The factories cannot fail: the table has checked the attributes. Every table
// has the float "learning_rate".
struct UpdateRuleEntry {
  absl::Span<const AttrDef> (*attributes)();
  UpdateRuleFactory<UpdateRule> create;
  UpdateRuleFactory<UpdateRuleOf<float>> create_float_reference;
  UpdateRuleFactory<UpdateRuleOf<double>> create_double_reference;
};

struct UpdateRuleTag {
  static constexpr char kKind[] = "optimizer";
};
using UpdateRuleRegistry = Registry<UpdateRuleTag, UpdateRuleEntry>;

// A Formula is one rule's settings and mathematics (sgd_ref.h is the shortest):
//
//   struct Formula {
//     Formula(const Attributes&, const LearningRate&);
//     template <typename T> struct Constants {...};  // of one Apply
//     // Computed in double, then narrowed.
//     template <typename T> Constants<T> ConstantsAt(const BlockUpdate&) const;
//     template <typename T> std::vector<SlotDefOf<T>> Slots() const;
//     // One element, the i-th of each slot.
//     template <typename T>
//     static void Update(const Constants<T>& c, T gradient, T* parameter,
//                        absl::Span<T* const> slots, int64_t i);
//   };

// The plain loop over Formula::Update.
template <typename Formula, typename T>
class ReferenceRule : public UpdateRuleOf<T> {
 public:
  explicit ReferenceRule(const Formula& formula)
      : formula_(formula), slots_(formula.template Slots<T>()) {}

  absl::Span<const SlotDefOf<T>> slots() const override { return slots_; }

  void Apply(const BlockUpdate& update, const T* gradient, T* parameter,
             absl::Span<T* const> slots, int64_t n) const override {
    const auto constants = formula_.template ConstantsAt<T>(update);
    for (int64_t i = 0; i < n; ++i) {
      Formula::template Update<T>(constants, gradient[i], &parameter[i], slots,
                                  i);
    }
  }

 private:
  const Formula formula_;
  const std::vector<SlotDefOf<T>> slots_;
};

// Does one Apply, of which the constants are known, and picks the machine's
// instruction set.
template <typename Formula>
using UpdateKernel =
    void (*)(const typename Formula::template Constants<float>& constants,
             const EncodedValues& gradient, float* parameter,
             absl::Span<float* const> slots, int64_t n);

// Published values are copied when so much of them was updated: 8 KB of a
// parameter, its gradient and two slots fill a first-level cache of 32 KB.
// Copies of 64 KB from the second-level one took 17 % of an Adam's time (Zen 4,
// 13.1 MB), these take 5 %.
inline constexpr int64_t kPublishedElements = 2048;

// Constants of updates of rows that are kept while others are made.
inline constexpr int64_t kKnownConstants = 64;

// The same on vectors.
template <typename Formula, UpdateKernel<Formula> kKernel>
class VectorRule : public UpdateRule {
 public:
  explicit VectorRule(const Formula& formula)
      : formula_(formula), slots_(formula.template Slots<float>()) {}

  absl::Span<const SlotDef> slots() const override { return slots_; }

  void Apply(const BlockUpdate& update, const float* gradient, float* parameter,
             absl::Span<float* const> slots, int64_t n) const override {
    kKernel(formula_.template ConstantsAt<float>(update), AsEncoded(gradient),
            parameter, slots, n);
  }

  void ApplyEncoded(const BlockUpdate& update,
                    const UpdateRule::Elements& all) const override {
    const auto constants = formula_.template ConstantsAt<float>(update);
    if (all.publish_to == nullptr) {
      return kKernel(constants, all.gradient, all.parameter, all.slots, all.n);
    }
    absl::InlinedVector<float*, 2> slots(all.slots.begin(), all.slots.end());
    for (int64_t done = 0; done < all.n; done += kPublishedElements) {
      const int64_t n = std::min(kPublishedElements, all.n - done);
      float* const parameter = all.parameter + done;
      kKernel(constants, all.gradient.From(done), parameter, slots, n);
      std::memcpy(all.publish_to + done, parameter, n * sizeof(float));
      for (float*& slot : slots) slot += n;
    }
  }

  void ApplyToRows(absl::Span<const UpdateRule::RowUpdate> rows,
                   int64_t n) const override {
    // Those of the last rows with such a t.
    struct Known {
      BlockUpdate update;
      typename Formula::template Constants<float> constants;
    };
    std::array<Known, kKnownConstants> known;
    for (Known& each : known) each.update.t = 0;
    absl::InlinedVector<float*, 2> slots(slots_.size());
    for (const UpdateRule::RowUpdate& row : rows) {
      Known& of = known[row.update.t % kKnownConstants];
      if (of.update.t != row.update.t ||
          of.update.updates_before != row.update.updates_before) {
        of = {row.update, formula_.template ConstantsAt<float>(row.update)};
      }
      float* next = row.row;
      for (float*& slot : slots) slot = next += n;
      kKernel(of.constants, AsEncoded(row.gradient), row.row, slots, n);
    }
  }

  UpdateConstants ConstantsAt(const BlockUpdate& update) const override {
    using Constants = typename Formula::template Constants<float>;
    if constexpr (std::is_constructible_v<UpdateConstants, Constants>) {
      return formula_.template ConstantsAt<float>(update);
    } else {
      return std::monostate();
    }
  }

 private:
  const Formula formula_;
  const std::vector<SlotDef> slots_;
};

// Makes a Rule, of one of the two kinds above.
template <typename Base, typename Formula, typename Rule>
std::unique_ptr<Base> MakeRule(const Attributes& attributes,
                               const LearningRate& learning_rate) {
  return std::make_unique<Rule>(Formula(attributes, learning_rate));
}

// The entry of a rule that is given by its formula and its kernel.
template <typename Formula, UpdateKernel<Formula> kKernel>
UpdateRuleEntry MakeUpdateRuleEntry(absl::Span<const AttrDef> (*attributes)()) {
  return {
      attributes, &MakeRule<UpdateRule, Formula, VectorRule<Formula, kKernel>>,
      &MakeRule<UpdateRuleOf<float>, Formula, ReferenceRule<Formula, float>>,
      &MakeRule<UpdateRuleOf<double>, Formula, ReferenceRule<Formula, double>>};
}

}  // namespace muster

#endif  // COMMON_OPTIMIZER_UPDATE_RULE_REGISTRY_H_
