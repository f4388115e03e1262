// devsan is at work on a thread: what it calls meanwhile is not recorded.
#pragma once

#include "hooks/inprocess/common/thread_state.h"

namespace devsan::hooks {

class Busy {
 public:
  explicit Busy(ThreadState& state) noexcept : state_(state) { state_.busy = true; }
  ~Busy() { state_.busy = false; }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

 private:
  ThreadState& state_;
};

}  // namespace devsan::hooks
