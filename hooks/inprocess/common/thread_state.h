// What the hooks keep for each thread, in the static TLS of libdevsan.so.
#pragma once

#include <cstddef>
#include <cstdint>

#include "preload/hooks_abi.h"
#include "trace/file_layout.h"

// constinit: without it each access would ask whether the block has to be initialised first.
extern "C" constinit thread_local devsan::ThreadBlock devsan_thread_block __attribute__((tls_model("initial-exec")));

namespace c10 {
struct TensorImpl;
}

namespace devsan::hooks {

class EnteredCollective;
class GroupCall;
struct ThreadCaches;

// Where the running operator was called from, and what is known of the way there.
struct CallSite {
  trace::SiteId id;
  std::uint32_t marks;  // CodeMark of every frame between the operator and the user's frame
};

// Where Python was when it called the outermost operator. Saved and restored when Python runs inside an operator and
// calls another. Without initial values: every operator has room for one, and few fill it.
struct OuterCall {
  const void* python;             // the thread's PyThreadState; null outside Python
  const void* const* frame_word;  // changes when Python runs; outside Python, a word that never does
  const void* frame;              // its value when the operator was called
  CallSite site;
};

// The first two cache lines are what every outermost operator reads or writes; the wrappers of nested ones read the
// first.
struct ThreadState {
  std::uint64_t epoch;           // of the recorder's file that `ring` lies in
  trace::StringId device_error;  // text of PyTorch's device-check failure that is on its way out
  bool device_error_certain;     // it can mean nothing else
  bool busy;                     // devsan is at work on this thread: record nothing
  bool gives_away;               // the address of a tensor's memory, which note_outside_reader() tells of
  std::uint8_t watching;         // watched operators (traffic.h) on this thread's stack
  std::uint32_t depth;           // outermost operators on this thread's stack
  std::uint32_t backward_depth;  // autograd nodes on this thread's stack
  OuterCall outer;
  std::uint32_t tid;
  std::uint32_t ring_index;  // of the next entry of `ring`

  trace::ThreadRing* ring;           // null when the recorder had none to give
  std::uint64_t sequence;            // operators that were recorded there
  std::uint64_t node_sequence;       // torch's count of autograd nodes of this thread, as last seen
  ThreadCaches* caches;              // null when there were none to give
  const void* main_python;           // the PyThreadState of the main thread, on that thread; null elsewhere
  const void* backward_frame;        // OuterCall::frame when this thread called autograd's engine; null outside
  trace::MeetingPayload* unhandled;  // a raise of this thread that the program has not been seen to catch
  const void* thrown;                // the C++ exception that the thread threw last,

  const void* thrown_type;     // and its std::type_info
  FindingScope* scopes;        // in which the program allows or expects findings, innermost first
  const void* node;            // torch::autograd::Node that runs on this thread
  CallSite backward_site;      // of the call at `backward_frame`
  const void* gradient_check;  // what autograd's engine is checking on this thread; null outside of such a check
  const c10::TensorImpl* generator_state;  // what a generator's state is being set from; null outside of that
  trace::TrafficPayload* number;  // what the host has just waited for, until the next operator shows who took it
  const void* number_frame;       // the frame that it was asked for in,
  std::uintptr_t number_address;  // and the instruction
  std::uint32_t raised_depth;     // `depth` of the operator that `unhandled` was raised by, or last passed through
  EnteredCollective* collective;  // that the thread is entering, the innermost
  GroupCall* group_call;          // the same of those that a function of their group began
};
static_assert(offsetof(ThreadState, ring) == 64 && offsetof(ThreadState, thrown_type) == 128);
static_assert(sizeof(ThreadState) <= sizeof(ThreadBlock));
static_assert(offsetof(ThreadState, scopes) == offsetof(ThreadBlock, scopes));

inline ThreadState& thread_state() noexcept {
  return reinterpret_cast<ThreadState&>(devsan_thread_block);
}

}  // namespace devsan::hooks
