// The wrapper of one ATen operator, made from the address of its `call`. This is the hot path: it runs for every
// operator of the program. While all operands are on one device it takes no lock, allocates nothing and makes no system
// call.
//
// An operator that another operator calls is nested, and passed on at once: two of three operators are. The outermost
// one looks at its operands, finds the calling site, and gives what it made an origin.
#pragma once

#include <ATen/Operators.h>

#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "hooks/inprocess/events/operator_table.h"
#include "hooks/torch_bridge/call.h"
#include "hooks/torch_bridge/operands.h"
#include "hooks/torch_bridge/traffic.h"
#include "hooks/torch_bridge/wrapper_entry.h"

namespace devsan::hooks {

template <class T>
inline constexpr bool is_storage = std::is_same_v<std::remove_cvref_t<T>, at::Storage>;

// Arguments are passed on as they came. A generator, or a storage, is copied instead of moved, so that a call that
// throws can still tell which one it was given.
template <class A>
decltype(auto) pass_on(std::remove_reference_t<A>& argument) noexcept {
  if constexpr (std::is_same_v<A, std::optional<at::Generator>> || is_storage<A>) {
    return static_cast<const A&>(argument);
  } else {
    return static_cast<A&&>(argument);
  }
}

inline void note_result(OutermostCall& call, const ArgumentsView& arguments, const at::Tensor& result) noexcept {
  if (!call.made(result.unsafeGetTensorImpl())) [[unlikely]]
    call.made_unless_operand(result.unsafeGetTensorImpl(), arguments);
}
inline void note_result(OutermostCall& call, const ArgumentsView& arguments,
                        const std::vector<at::Tensor>& results) noexcept {
  for (const at::Tensor& result : results) note_result(call, arguments, result);
}
template <class T>
inline void note_result(OutermostCall&, const ArgumentsView&, const T&) noexcept {}
template <class... T>
inline void note_result(OutermostCall& call, const ArgumentsView& arguments, const std::tuple<T...>& results) noexcept {
  std::apply([&](const auto&... result) { (note_result(call, arguments, result), ...); }, results);
}

// Operators that return a reference return one of their arguments: nothing new to give an origin to.
template <class R>
inline constexpr bool makes_values = std::is_same_v<R, at::Tensor> || std::is_same_v<R, std::vector<at::Tensor>> ||
                                     (!std::is_reference_v<R> && std::is_constructible_v<R> && !std::is_scalar_v<R> &&
                                      requires { std::tuple_size<R>::value; });

// Operators that return a number or a bool only ask something of tensors (is_same_size): no meeting worth a note.
template <class R>
inline constexpr bool computes = !std::is_scalar_v<R>;

template <auto Real>
inline constexpr Watch watch_of = Watch::none;
#define DEVSAN_WATCHED(op, how) \
  template <>                   \
  inline constexpr Watch watch_of<&at::_ops::op::call> = Watch::how;
#include "hooks/torch_bridge/watched_operators.def"
#undef DEVSAN_WATCHED

template <auto Real>
inline constexpr std::optional<Copied> leaves = std::nullopt;
#define DEVSAN_LEAVES(op, how) \
  template <>                  \
  inline constexpr std::optional<Copied> leaves<&at::_ops::op::call> = Copied::how;
#include "hooks/torch_bridge/leaving_operators.def"
#undef DEVSAN_LEAVES

// A copy is kept apart from what it was taken of, and who asked a library for it decides when: its step has its
// callers, like one that brings a value to its device.
template <auto Real>
inline constexpr bool takes_copy = false;
template <>
inline constexpr bool takes_copy<&at::_ops::clone::call> = true;

// Functions that other sources could have as well are not split by g++ into what runs and what hardly ever does, and a
// seldom called operator's wrapper costs as many misses as its code has cache lines. Each source with wrappers has its
// own: no two have the same.
namespace {

// `Weight`: which argument is the weight of a module, or -1.
template <auto Real, std::uint16_t Id, int Weight>
struct Wrapper;

template <class R, class... A, R (*Real)(A...), std::uint16_t Id, int Weight>
struct Wrapper<Real, Id, Weight> {
  static R outermost(A... arguments) { return run(__builtin_return_address(0), arguments...); }
  using Entry = WrapperEntry<Real, &outermost>;

  // Compilers do not make a jump of every call that could be one (g++ 12 does not for what returns a tensor), so who
  // called is passed on.
  struct WatchedEntry {
    static R entry(A... arguments) {
      if (may_be_traffic<watch_of<Real>>(arguments...)) [[unlikely]]
        return traffic(__builtin_return_address(0), static_cast<A&&>(arguments)...);
      if (is_nested(thread_state())) return Real(static_cast<A&&>(arguments)...);
      return outermost_of(__builtin_return_address(0), static_cast<A&&>(arguments)...);
    }
  };

  // Its entry() goes into the slots in the place of `Real`.
  using Begin = std::conditional_t<watch_of<Real> == Watch::none, Entry, WatchedEntry>;

 private:
  [[gnu::noinline]] static R outermost_of(const void* caller, A... arguments) { return run(caller, arguments...); }

  [[gnu::noinline]] static R traffic(const void* caller, A... arguments) {
    const bool nested = is_nested(thread_state());
    const WatchedCall call(watch_of<Real>, trace::OperatorId{Id}, nested);
    R result = nested ? Real(pass_on<A>(arguments)...) : run(caller, arguments...);
    note_watched<watch_of<Real>>(call, arguments...);
    return result;
  }

  // A new tensor, and nothing else has to be noted of the call.
  static constexpr bool makes_one_value =
      std::is_same_v<R, at::Tensor> && !leaves<Real>.has_value() && !takes_copy<Real> && !(is_storage<A> || ...);

  // `caller`: where the operator returns to.
  [[gnu::always_inline]] static R run(const void* caller, std::remove_reference_t<A>&... arguments) {
    Operands seen;
    (look(seen, arguments), ...);
    if constexpr (Weight >= 0) prefer(seen, std::get<Weight>(std::tie(arguments...)));
    const auto enumerate_all = [&](OperandSink& sink) {
      int place = 0;
      (enumerate(sink, place++, arguments), ...);
    };
    OutermostCall scope(trace::OperatorId{Id}, seen, makes_values<R>);
    if (attention.load(std::memory_order_relaxed) != 0) [[unlikely]]
      attend(thread_state(), trace::OperatorId{Id}, ArgumentsView(enumerate_all), caller);
    // Runs only when the operator throws: on the way out nothing is caught, so an exception that nobody catches still
    // ends the process where it was thrown.
    struct Unwinding {
      OutermostCall& scope;
      const decltype(enumerate_all)& arguments;
      const void* caller;
      bool left = false;
      ~Unwinding() {
        if (!left) [[unlikely]]
          scope.thrown(ArgumentsView(arguments), caller);
      }
    } unwinding{scope, enumerate_all, caller};
    if constexpr (std::is_void_v<R>) {
      Real(pass_on<A>(arguments)...);
      unwinding.left = true;
      if (seen.mixed) [[unlikely]]
        scope.allowed(ArgumentsView(enumerate_all), caller);
      scope.returned();
    } else if constexpr (makes_one_value) {
      R result = Real(pass_on<A>(arguments)...);
      unwinding.left = true;
      const c10::TensorImpl* made = result.unsafeGetTensorImpl();
      if (!scope.finished(made)) [[unlikely]]
        scope.finish(made, ArgumentsView(enumerate_all), caller);
      return result;
    } else {
      R result = Real(pass_on<A>(arguments)...);
      unwinding.left = true;
      if constexpr (makes_values<R>) note_result(scope, ArgumentsView(enumerate_all), result);
      if constexpr (computes<R>) {
        if (seen.mixed) [[unlikely]]
          scope.allowed(ArgumentsView(enumerate_all), caller);
      }
      if constexpr (std::is_same_v<std::remove_cvref_t<R>, at::Tensor>) {
        if constexpr (takes_copy<Real>) scope.took_copy(result.unsafeGetTensorImpl());
        if constexpr (leaves<Real>.has_value()) scope.left_operand(*leaves<Real>, result.unsafeGetTensorImpl());
        if constexpr ((is_storage<A> || ...)) scope.took_storage(result.unsafeGetTensorImpl());
        scope.returned(result.unsafeGetTensorImpl());
      } else {
        scope.returned();
      }
      return result;
    }
  }
};

}  // namespace

}  // namespace devsan::hooks
