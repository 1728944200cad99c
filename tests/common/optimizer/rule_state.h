// A parameter with its slots, updated step by step, for tests.
#ifndef TESTS_COMMON_OPTIMIZER_RULE_STATE_H_
#define TESTS_COMMON_OPTIMIZER_RULE_STATE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/codec/value_format.h"
#include "common/optimizer/update_rule.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "proto/training.pb.h"

namespace muster {

inline OptimizerSpec ParseOptimizer(const std::string& text) {
  OptimizerSpec spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &spec))
      << text;
  return spec;
}

template <typename T>
class RuleState {
 public:
  RuleState(const UpdateRuleOf<T>* rule, std::vector<T> parameter)
      : rule_(rule), parameter_(std::move(parameter)) {
    for (const auto& slot : rule->slots()) {
      slots_.emplace_back(parameter_.size(), slot.initial_value);
    }
  }

  // One update of the elements from `begin` to `end`, exclusive.
  void Apply(const BlockUpdate& update, const std::vector<T>& gradient,
             size_t begin, size_t end) {
    std::vector<T*> slots;
    for (std::vector<T>& slot : slots_) slots.push_back(slot.data() + begin);
    rule_->Apply(update, gradient.data() + begin, parameter_.data() + begin,
                 slots, static_cast<int64_t>(end - begin));
  }
  void Apply(int64_t t, const std::vector<T>& gradient, size_t begin,
             size_t end) {
    Apply(BlockUpdate{t}, gradient, begin, end);
  }
  void Apply(const BlockUpdate& update, const std::vector<T>& gradient) {
    Apply(update, gradient, 0, parameter_.size());
  }
  void Apply(int64_t t, const std::vector<T>& gradient) {
    Apply(BlockUpdate{t}, gradient);
  }

  // The t-th update of all elements, by a rule that trains.
  void ApplyEncoded(int64_t t, const EncodedValues& gradient,
                    float* publish_to) {
    std::vector<float*> slots;
    for (std::vector<T>& slot : slots_) slots.push_back(slot.data());
    static_cast<const UpdateRule*>(rule_)->ApplyEncoded(
        {t}, {gradient, parameter_.data(), slots,
              static_cast<int64_t>(parameter_.size()), publish_to});
  }

  const std::vector<T>& parameter() const { return parameter_; }
  const std::vector<std::vector<T>>& slots() const { return slots_; }

 private:
  const UpdateRuleOf<T>* const rule_;
  std::vector<T> parameter_;
  std::vector<std::vector<T>> slots_;
};

}  // namespace muster

#endif  // TESTS_COMMON_OPTIMIZER_RULE_STATE_H_
