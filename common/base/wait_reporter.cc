#include "common/base/wait_reporter.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

constexpr absl::Duration kSayFirst = absl::Seconds(1);
constexpr absl::Duration kSayEvery = absl::Seconds(10);

}  // namespace

std::string WaitReporter::WaitFor(absl::string_view what, absl::Time now) {
  if (since_ == absl::InfiniteFuture()) {
    since_ = now;
    say_at_ = now + kSayFirst;
  }
  if (now < say_at_) return "";
  say_at_ = now + kSayEvery;
  said_ = true;
  return absl::StrCat("waiting for ", what, "; ",
                      absl::ToInt64Seconds(now - since_), " s so far");
}

void WaitReporter::TakeOver(absl::Time since, absl::Time now) {
  if (since_ <= since) return;
  since_ = since;
  say_at_ = since + kSayFirst;
  said_ = said_ || say_at_ <= now;
  while (say_at_ <= now) say_at_ += kSayEvery;
}

bool WaitReporter::Stop() {
  since_ = say_at_ = absl::InfiniteFuture();
  return std::exchange(said_, false);
}

}  // namespace muster
