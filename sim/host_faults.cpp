#include "sim/host_faults.h"

#include <dlfcn.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>

#include "sim/guarded_pages.h"
#include "sim/pinned_pages.h"

namespace devsan::sim {
namespace {

constexpr int kMostAccesses = 64;  // of devices told of in one process, whose own handler may well recover from them
constexpr std::size_t kStackBytes = std::size_t{256} << 10;

std::atomic<const std::atomic<const DeviceWatch*>*> g_watch{nullptr};
struct sigaction g_before {};  // what the program had when our handler came

// Python's faulthandler, where it was put over ours and ours over it again. It is called once: it has done its work
// then, and hands on to what it found, which is our handler.
struct sigaction g_faulthandler {};
std::atomic<bool> g_faulthandler_waits{false};

std::atomic_flag g_telling = ATOMIC_FLAG_INIT;
int g_told = 0;
alignas(64) char g_stack[kStackBytes];

void on_fault(int signal, siginfo_t* info, void* context);

// A program's alternate signal stack may have room for little more than the signal.
void call_on_own_stack(void (*function)(void*), void* argument) noexcept {
  char* top = g_stack + kStackBytes;
  asm volatile(
      "movq %%rsp, %%rbx\n\t"
      "movq %[top], %%rsp\n\t"
      "callq *%[function]\n\t"
      "movq %%rbx, %%rsp"
      : "+D"(argument)
      : [top] "r"(top), [function] "r"(function)
      : "rax", "rbx", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5",
        "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "memory", "cc");
}

struct Fault {
  const siginfo_t* info;
  const ucontext_t* context;
};

// What the top of the stack of the code that faulted holds; it may have none that can be read.
const void* top_of_stack(const ucontext_t& context) noexcept {
  const auto top = static_cast<std::uintptr_t>(context.uc_mcontext.gregs[REG_RSP]);
  const void* word = nullptr;
  struct iovec local {
    &word, sizeof word
  };
  struct iovec remote {
    reinterpret_cast<void*>(top), sizeof word
  };
  return syscall(SYS_process_vm_readv, getpid(), &local, 1, &remote, 1, 0) == sizeof word ? word : nullptr;
}

const DeviceWatch* fault_watch() noexcept {
  const auto* attached = g_watch.load(std::memory_order_acquire);
  return attached != nullptr ? attached->load(std::memory_order_acquire) : nullptr;
}

bool is_write(const Fault& fault) noexcept {
  constexpr greg_t kWrite = 2;  // of the page fault's error code
  return (fault.context->uc_mcontext.gregs[REG_ERR] & kWrite) != 0;
}

void tell_access(void* argument) noexcept {
  const auto& fault = *static_cast<const Fault*>(argument);
  const DeviceWatch* told = fault_watch();
  if (told == nullptr || g_told++ >= kMostAccesses) return;
  const auto& registers = fault.context->uc_mcontext.gregs;
  GuardedMemory memory{};
  const bool known = find_guarded(fault.info->si_addr, &memory);
  HostAccess access{};
  access.address = fault.info->si_addr;
  access.block = known ? memory.begin : nullptr;
  access.bytes = memory.bytes;
  access.device = known ? memory.device : -1;
  access.writes = is_write(fault);
  access.instruction = reinterpret_cast<const void*>(static_cast<std::uintptr_t>(registers[REG_RIP]));
  access.caller = top_of_stack(*fault.context);
  told->host_accessed(access);
}

void tell_touch(void* argument) noexcept {
  const auto& fault = *static_cast<const Fault*>(argument);
  if (const DeviceWatch* told = fault_watch()) told->host_touched(fault.info->si_addr, is_write(fault));
}

// Another thread's fault at the same moment is not told of, rather than waited for.
void note_fault(void (*tell)(void*), const siginfo_t* info, const void* context) noexcept {
  if (g_telling.test_and_set(std::memory_order_acquire)) return;
  Fault fault{info, static_cast<const ucontext_t*>(context)};
  call_on_own_stack(tell, &fault);
  g_telling.clear(std::memory_order_release);
}

bool is_handler(const struct sigaction& action) noexcept {
  return (action.sa_flags & SA_SIGINFO) != 0 || (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
}

void call(const struct sigaction& action, int signal, siginfo_t* info, void* context) {
  if ((action.sa_flags & SA_SIGINFO) != 0) {
    action.sa_sigaction(signal, info, context);
  } else {
    action.sa_handler(signal);
  }
}

// The program's handler sees the signal that we saw. Without one the signal comes again, to the disposition that the
// program has: a fault by itself, as soon as the instruction is tried once more, and one that was sent by our hand.
void hand_on(int signal, siginfo_t* info, void* context) {
  if (g_faulthandler_waits.exchange(false)) return call(g_faulthandler, signal, info, context);
  const struct sigaction before = g_before;
  if (is_handler(before)) {
    if ((before.sa_flags & static_cast<int>(SA_RESETHAND)) != 0) g_before.sa_handler = SIG_DFL, g_before.sa_flags = 0;
    return call(before, signal, info, context);
  }
  const bool was_sent = info->si_code <= 0;
  if (was_sent && before.sa_handler == SIG_IGN) return;
  sigaction(signal, &before, nullptr);
  if (was_sent) syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), signal, info);
}

void on_fault(int signal, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  const bool by_access = info->si_code > 0;
  const Touch touch = by_access ? touch_pinned_pages(info->si_addr) : Touch::none;
  if (touch == Touch::closed) note_fault(&tell_touch, info, context);
  if (touch == Touch::none && by_access && is_guarded(info->si_addr)) note_fault(&tell_access, info, context);
  errno = saved_errno;
  if (touch == Touch::none) hand_on(signal, info, context);
}

// Signals are blocked, and the stack is chosen, as they are for the handler that ours comes before.
bool install_before(const struct sigaction& other) noexcept {
  struct sigaction ours {};
  ours.sa_sigaction = &on_fault;
  ours.sa_mask = other.sa_mask;
  ours.sa_flags = SA_SIGINFO | (is_handler(other) ? other.sa_flags & (SA_ONSTACK | SA_NODEFER) : SA_ONSTACK);
  return sigaction(SIGSEGV, &ours, nullptr) == 0;
}

bool is_ours(const struct sigaction& action) noexcept {
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == &on_fault;
}

// A handler of Python's own that lets the signal come while it runs: that of its module `signal` does not.
bool is_faulthandler(const struct sigaction& action) noexcept {
  if (!is_handler(action) || (action.sa_flags & SA_SIGINFO) != 0 || (action.sa_flags & SA_NODEFER) == 0) return false;
  const void* python = dlsym(RTLD_DEFAULT, "Py_IsInitialized");
  Dl_info of_python{}, of_handler{};
  return python != nullptr && dladdr(python, &of_python) != 0 &&
         dladdr(reinterpret_cast<const void*>(action.sa_handler), &of_handler) != 0 &&
         of_python.dli_fbase == of_handler.dli_fbase;
}

}  // namespace

void watch_host_faults(const std::atomic<const DeviceWatch*>* watch) noexcept {
  if (g_watch.exchange(watch, std::memory_order_acq_rel) != nullptr) return;
  if (sigaction(SIGSEGV, nullptr, &g_before) == 0) install_before(g_before);
}

void stay_before_faulthandler() noexcept {
  static std::atomic_flag busy = ATOMIC_FLAG_INIT;
  static std::atomic<void (*)(int)> passed_over{nullptr};  // a handler of the program's own, which stays in front
  struct sigaction now {};
  if (sigaction(SIGSEGV, nullptr, &now) != 0 || is_ours(now) || now.sa_handler == passed_over.load()) return;
  if (busy.test_and_set(std::memory_order_acquire)) return;
  if (is_faulthandler(now)) {
    g_faulthandler_waits.store(false);
    g_faulthandler = now;
    g_faulthandler_waits.store(true);
    install_before(now);
  } else {
    passed_over.store(now.sa_handler);
  }
  busy.clear(std::memory_order_release);
}

bool host_faults_are_seen() noexcept {
  stay_before_faulthandler();
  struct sigaction now {};
  return sigaction(SIGSEGV, nullptr, &now) == 0 && is_ours(now);
}

}  // namespace devsan::sim
