#ifndef TESTS_TESTING_PLACED_ANSWER_H_
#define TESTS_TESTING_PLACED_ANSWER_H_

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/rpc/parameter_link.h"

namespace muster {

// An answer with values on its way to a ValuePlace. One thread at a time
// writes; others may end it meanwhile.
class PlacedAnswer {
 public:
  template <typename Header>
  PlacedAnswer(std::shared_ptr<ValuePlace> place, Frame<Header> reply,
               ReplyCallback<Frame<Header>> done)
      : place_(std::move(place)),
        data_(reply.data),
        pieces_(place_->PiecesFor(data_.size())) {
    if (is_placed()) reply.data.Clear();
    reply.is_placed = is_placed();
    finish_ = [reply = std::move(reply), done](const absl::Status& status) {
      if (!status.ok()) return done(status);
      done(reply);
    };
  }

  bool is_placed() const { return !pieces_.empty(); }
  size_t size() const { return is_placed() ? data_.size() : 0; }
  size_t written() const { return written_; }

  // Writes the next values, `bytes` at most. False: nobody wants them.
  // REQUIRES: is_placed().
  bool Write(size_t bytes) {
    return place_->WriteIfWanted([&] { WriteNext(bytes); });
  }
  // The same after `wait`, which runs when the write was begun.
  bool WriteAfter(absl::FunctionRef<void()> wait, size_t bytes) {
    return place_->WriteIfWanted([&] {
      wait();
      WriteNext(bytes);
    });
  }
  // Begins anew with a byte that is in none of the values.
  void Garble() {
    data_.assign(data_.size(), '\x5a');
    written_ = 0;
  }
  void Finish() { finish_(absl::OkStatus()); }
  void Fail(const absl::Status& status) { finish_(status); }

 private:
  void WriteNext(size_t bytes) {
    const size_t end = std::min(written_ + bytes, data_.size());
    size_t begin = 0;  // of the piece
    for (const absl::Span<char> piece : pieces_) {
      const size_t from = std::max(begin, written_);
      const size_t to = std::min(begin + piece.size(), end);
      // ThreadSanitizer, as .bazelrc has it, does not look into memcpy.
      for (size_t i = from; i < to; ++i) piece[i - begin] = data_[i];
      begin += piece.size();
    }
    written_ = end;
  }

  const std::shared_ptr<ValuePlace> place_;
  std::string data_;
  const absl::Span<const absl::Span<char>> pieces_;
  size_t written_ = 0;
  std::function<void(const absl::Status&)> finish_;
};

}  // namespace muster

#endif  // TESTS_TESTING_PLACED_ANSWER_H_
