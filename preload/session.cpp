#include "preload/session.h"

#include <dlfcn.h>
#include <link.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "preload/cuda_calls.h"
#include "preload/cuda_telling.h"
#include "preload/cuda_wrappers.h"
#include "preload/hooks_choice.h"
#include "preload/hooks_fit.h"
#include "preload/interpreter.h"
#include "preload/out_directory.h"
#include "preload/own_folder.h"
#include "preload/pinned_bytes.h"
#include "preload/plt_patcher.h"
#include "preload/process_rules.h"
#include "preload/process_suppressions.h"
#include "preload/real_symbol.h"
#include "preload/run_identity.h"
#include "preload/run_info.h"
#include "preload/say.h"
#include "trace/options.h"

extern "C" {
__attribute__((visibility("default"),
               tls_model("initial-exec"))) constinit thread_local devsan::ThreadBlock devsan_thread_block{};
}

namespace devsan {
namespace {

constexpr std::size_t kOptionsSize = 16384;

constinit std::atomic<Stage> g_stage{Stage::off};
constinit trace::Recorder g_recorder;
constinit PltPatcher g_patcher;
constinit std::atomic<SimModuleCreated> g_module_created{nullptr};
constinit FixedText<kOptionsSize> g_options_text;
constinit HostServices g_services{};
constinit std::atomic<StatusAtEnd> g_status_at_end{nullptr};
constinit std::atomic<void (*)()> g_objects_loaded{nullptr};
constinit std::atomic<const DeviceWatch*> g_device_watch{nullptr};
constinit std::atomic<const PinnedPages*> g_pinned_pages{nullptr};

// Never destroyed: threads may outlive the end of main.
alignas(trace::Options) constinit unsigned char g_options_memory[sizeof(trace::Options)] = {};

using Message = FixedText<8192>;

// One thread at a time patches. Others leave word and wait for it a moment, so that their object is patched when they
// go on to use it; no longer, since they may hold the loader's lock that the one needs.
class PatchTurn {
 public:
  static bool take() noexcept {
    pid_t nobody = 0;
    const pid_t self = getpid();
    if (owner_.compare_exchange_strong(nobody, self, std::memory_order_acquire)) return true;
    // The owner is a thread of the process that this one was forked from, and left things half done.
    if (nobody != self) set_stage(Stage::off);
    return false;
  }

  static void wait_a_moment() noexcept {
    constexpr timespec kStep{0, 100'000};
    constexpr int kSteps = 100;
    for (int i = 0; i < kSteps && owner_.load(std::memory_order_acquire) != 0; ++i) nanosleep(&kStep, nullptr);
  }

  static void give_back() noexcept { owner_.store(0, std::memory_order_release); }

 private:
  inline static constinit std::atomic<pid_t> owner_{0};
};

constinit std::atomic<bool> g_look_again{false};
constinit std::atomic<unsigned long long> g_scanned_added{0};
constinit std::atomic<unsigned long long> g_scanned_removed{0};

struct Loaded {
  void* handle = nullptr;
  const link_map* object = nullptr;
};

Loaded load(const char* directory, const char* name, Message* error) noexcept {
  static constinit RealSymbol dlopen_symbol("dlopen");
  static constinit RealSymbol dlerror_symbol("dlerror");
  FixedText<kCachePathSize> path(directory);
  path.append("/").append(name);
  Loaded loaded;
  auto* open = dlopen_symbol.as<void*(const char*, int)>();
  if (open != nullptr) loaded.handle = open(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  loaded.object = static_cast<const link_map*>(loaded.handle);
  if (loaded.handle == nullptr) {
    auto* reason = dlerror_symbol.as<char*()>();
    const char* text = reason != nullptr ? reason() : nullptr;
    error->append("cannot load ").append(path.view()).append(": ").append(text != nullptr ? text : "no reason given");
  }
  return loaded;
}

template <typename Function>
Function exported(const Loaded& library, const char* name) noexcept {
  return reinterpret_cast<Function>(ElfImage(library.object->l_addr, library.object->l_ld).find_address(name));
}

void* replace_cuda_call(const char* symbol, void* real, const ElfImage& object) noexcept {
  if (!cuda::may_be_call(symbol)) return nullptr;
  return real != nullptr ? cuda::in_place_of(symbol, real) : cuda::in_place_of_unbound(symbol, object);
}

constexpr int kNoRehearsalStatus = 69;

// What one start does, step by step. Each step is false when it could not be done, and has then said why.
class Start {
 public:
  Start(const TorchSighting& torch, bool importing) noexcept
      : torch_(torch), importing_(importing), options_(*reinterpret_cast<const trace::Options*>(g_options_memory)) {}

  bool run() noexcept { return begin() || end_rehearsal(); }

 private:
  bool begin() noexcept {
    interpreter_ = inspect_interpreter(importing_);
    ancestry_ = look_at_ancestors();
    read_options();
    if (!interpreter_is_supported() || !find_hooks() || !open_recorder()) return false;
    read_suppressions();
    read_rules();
    return load_simulation() && load_hooks();
  }

  // What was to be a few steps on simulated devices must not become the whole training on real ones.
  bool end_rehearsal() const noexcept {
    if (options_.stop_after <= 0) return false;
    say("a rehearsal without devsan and its simulated devices is none: the process ends with status 69");
    ::_exit(kNoRehearsalStatus);
  }

  // Once for a run: a child of a process that said it does not repeat it.
  void tell(const char* sentence) const noexcept {
    g_recorder.add_notice(sentence);
    if (!ancestry_.another_started && !told_already_) say(sentence);
  }

  bool fail(const Message& message) const noexcept {
    tell(message.c_str());
    return false;
  }

  bool fail_to_load(Message message) const noexcept {
    return fail(message.append("; the program runs without devsan"));
  }

  void read_options() const noexcept {
    trace::ParsedOptions parsed = trace::parse_options(g_options_text.view());
    new (g_options_memory) trace::Options(std::move(parsed.options));
    set_quiet(options_.quiet);
    g_services.options = {options_.halt,
                          options_.sim,
                          trace::parse_size(options_.sim_memory),
                          options_.sim_late_copies,
                          options_.sim_guard,
                          options_.source,
                          options_.stop_after,
                          options_.hang_after,
                          options_.placements};
    if (ancestry_.another_started) return;
    if (g_options_text.truncated()) say("DEVSAN_OPTIONS is too long; its end is ignored");
    for (const std::string& complaint : parsed.complaints) {
      Message message("DEVSAN_OPTIONS: ");
      say(message.append(complaint).c_str());
    }
  }

  bool interpreter_is_supported() const noexcept {
    return interpreter_.refusal == nullptr || fail(Message(interpreter_.refusal));
  }

  bool find_hooks() noexcept {
    if (!options_.hooks.empty()) {
      hooks_directory_.append(options_.hooks);
      return libraries_are_there();
    }
    HooksChoice choice;
    told_already_ = make_cache_key(torch_.library.c_str(), &choice.cache) && options_.told == choice.cache.key;
    const Complaints complaints{[](const char* sentence, void* start) { static_cast<Start*>(start)->tell(sentence); },
                                this};
    choose_hooks(torch_.library.c_str(), own_folder().c_str(), complaints, &choice);
    if (choice.place == HooksPlace::none) return fail_without_hooks(choice);
    told_already_ = false;
    hooks_directory_ = choice.directory;
    return libraries_are_there();
  }

  bool fail_without_hooks(const HooksChoice& choice) const noexcept {
    Message message;
    if (choice.torch_is_too_old) {
      message.append("torch ").append(choice.torch.version.view()).append(" is too old: ");
      message.append_number(kOldestTorchMajor)
          .append(".")
          .append_number(kOldestTorchMinor)
          .append(" or later is needed");
      return fail_to_load(message);
    }
    if (choice.torch.abi == CxxAbi::unknown) {
      message.append("cannot tell the C++ ABI of the torch at ");
      return fail_to_load(message.append(parent_path(torch_.library.c_str(), 2).view()));
    }
    switch (choice.cached) {
      case HooksState::ready:
      case HooksState::missing:
        return fail_with_missing_hooks();
      case HooksState::no_home:
        message.append("no home directory to look for hooks in");
        break;
      case HooksState::no_build_id:
        message.append("no build-id in ").append(torch_.library.view());
        break;
      case HooksState::not_private:
        message.append(choice.cache.directory).append(" or the folder above it belongs to another user or can be ");
        message.append("written by other users");
        break;
    }
    return fail_to_load(message);
  }

  bool is_there(const char* name) const noexcept {
    FixedText<kCachePathSize> library(hooks_directory_.view());
    return access(library.append("/").append(name).c_str(), R_OK) == 0;
  }

  // Looked at before anything is written.
  bool libraries_are_there() const noexcept {
    if (is_there(kHooksLibrary)) return true;
    Message message("no hooks at ");
    return fail_to_load(message.append(hooks_directory_.view()).append("/").append(kHooksLibrary));
  }

  bool fail_with_missing_hooks() const noexcept {
    Message message("no hooks for the torch at ");
    message.append(parent_path(torch_.library.c_str(), 2).view()).append("; build them with: devsan build");
    if (interpreter_.present) message.append(" --python ").append(python_executable().view());
    return fail(message);
  }

  // A virtual environment's own python, which finds this torch, rather than the one that it links to.
  FixedText<4096> python_executable() const noexcept {
    const char* dot = std::strchr(interpreter_.version, '.');
    const char* second = dot != nullptr ? std::strchr(dot + 1, '.') : nullptr;
    FixedText<4096> path = parent_path(torch_.library.c_str(), 6);
    path.append("/bin/python");
    if (second != nullptr) path.append({interpreter_.version, static_cast<std::size_t>(second - interpreter_.version)});
    if (access(path.c_str(), X_OK) == 0) return path;
    char executable[4096];
    const ssize_t length = readlink("/proc/self/exe", executable, sizeof executable);
    return FixedText<4096>(length > 0 ? std::string_view(executable, static_cast<std::size_t>(length)) : "python3");
  }

  bool open_recorder() noexcept {
    const PathText directory = choose_directory(options_.out.c_str(), ancestry_);
    const trace::RecorderSettings settings{directory.c_str(), trace::parse_size(options_.trace_size),
                                           run_identity(options_.run.c_str(), ancestry_)};
    if (directory.truncated()) {
      errno = ENAMETOOLONG;
    } else if (g_recorder.open(settings) == trace::OpenResult::opened) {
      // exit() hands the status to nobody else. After fork the child has this, too, and a trace of its own or none.
      on_exit([](int status, void*) { g_recorder.note_exit_status(status); }, nullptr);
      write_run_info(&g_recorder, parent_path(torch_.library.c_str(), 2).c_str(), interpreter_.version);
      return true;
    } else {
      errno = g_recorder.last_errno();
    }
    Message message("cannot write traces to ");
    char reason[128];
    message.append(directory.view()).append(": ").append(strerror_r(errno, reason, sizeof reason));
    return fail_to_load(message);
  }

  void read_suppressions() const noexcept {
    for (const std::string& complaint : load_suppressions(options_.suppressions)) {
      Message message("suppressions: ");
      tell(message.append(complaint).c_str());
    }
    record_suppressions(&g_recorder);
  }

  void read_rules() const noexcept {
    for (const std::string& complaint : load_rules(options_.rules, options_.expect_not)) {
      Message message("rules: ");
      tell(message.append(complaint).c_str());
    }
    record_rules(&g_recorder);
  }

  bool go_on_without_simulation() const noexcept {
    char needed[64];
    std::snprintf(needed, sizeof needed, "they need torch %d.%d or later", kSimTorchMajor, kSimTorchMinor);
    Message message("no simulated devices: ");
    message.append(needed).append("; there is no ").append(hooks_directory_.view()).append("/").append(kSimLibrary);
    fail(message);
    g_services.options.simulated_devices = 0;
    return options_.stop_after <= 0;
  }

  bool load_simulation() noexcept {
    if (options_.sim <= 0) return true;
    if (!is_there(kSimLibrary)) return go_on_without_simulation();
    Message error;
    const Loaded library = load(hooks_directory_.c_str(), kSimLibrary, &error);
    if (library.handle == nullptr) return fail_to_load(error);
    g_patcher.leave_alone(library.object->l_ld);
    auto* attach = exported<SimAttach>(library, "devsan_sim_attach");
    if (attach == nullptr)
      return fail_to_load(error.append(kSimLibrary).append(" belongs to another version of devsan"));
    if (!attach(&g_services)) return false;
    g_module_created.store(exported<SimModuleCreated>(library, "devsan_sim_module_created"), std::memory_order_release);
    return true;
  }

  bool load_hooks() noexcept {
    Message error;
    const Loaded library = load(hooks_directory_.c_str(), kHooksLibrary, &error);
    if (library.handle == nullptr) return fail_to_load(error);
    auto* attach = exported<HooksAttach>(library, "devsan_hooks_attach");
    const HookTable* table = attach != nullptr ? attach(&g_services) : nullptr;
    if (attach == nullptr || (table != nullptr && table->abi != kHooksAbi)) {
      return fail_to_load(error.append(kHooksLibrary).append(" belongs to another version of devsan"));
    }
    if (table == nullptr) return false;
    if (g_services.options.simulated_devices == 0) cuda::tell_through(&g_device_watch);
    g_status_at_end.store(table->status_at_end, std::memory_order_release);
    g_objects_loaded.store(table->objects_loaded, std::memory_order_release);
    g_patcher.leave_alone(_DYNAMIC);  // our own
    g_patcher.ask_about_others(&replace_cuda_call);
    if (g_patcher.start(*table, ElfImage(library.object->l_addr, library.object->l_ld))) return patch();
    return fail_to_load(error.append(kHooksLibrary).append(" does not match this torch"));
  }

  bool patch() const noexcept {
    patch_new_objects();
    return g_patcher.slots() != 0 || g_patcher.objects_refused() == 0 ||
           fail_to_load(Message("cannot intercept the operators of torch"));
  }

  const TorchSighting& torch_;
  const bool importing_;
  const trace::Options& options_;
  Interpreter interpreter_;
  Ancestry ancestry_;
  FixedText<kCachePathSize> hooks_directory_;
  bool told_already_ = false;  // by `devsan run`, about the hooks for this torch
};

}  // namespace

Stage stage() noexcept {
  return g_stage.load(std::memory_order_acquire);
}
void set_stage(Stage stage) noexcept {
  g_stage.store(stage, std::memory_order_release);
}

bool begin_starting() noexcept {
  Stage expected = Stage::waiting;
  return g_stage.compare_exchange_strong(expected, Stage::starting);
}

trace::Recorder& recorder() noexcept {
  return g_recorder;
}

void remember_options() noexcept {
  const char* text = std::getenv("DEVSAN_OPTIONS");
  if (text != nullptr) g_options_text.append(text);
}

bool switched_off() noexcept {
  if (g_options_text.view().find("enabled") == std::string_view::npos) return false;
  return !trace::parse_options(g_options_text.view()).options.enabled;
}

namespace {

// Looks at all objects until nobody has left word meanwhile. Only one thread does; the others wait for it a moment.
void look_at_objects() noexcept {
  g_look_again.store(true);
  while (g_look_again.load()) {
    if (!PatchTurn::take()) return PatchTurn::wait_a_moment();
    g_look_again.store(false);
    const LoaderCounts before = loader_counts();
    const std::size_t refused = g_patcher.objects_refused();
    const bool complete = g_patcher.scan();
    if (g_patcher.objects_refused() != refused) {
      g_recorder.add_notice("the calls of one library are not intercepted: its function table cannot be made writable");
    }
    g_scanned_added.store(complete ? before.added : 0, std::memory_order_relaxed);
    g_scanned_removed.store(before.removed, std::memory_order_relaxed);
    PatchTurn::give_back();
    if (auto* told = g_objects_loaded.load(std::memory_order_acquire)) told();
  }
}

void demand() noexcept {
  g_patcher.demand();
  if (stage() == Stage::running) look_at_objects();
}

}  // namespace

void start(const TorchSighting& torch, bool importing) noexcept {
  g_services = {kHooksAbi,
                &g_recorder,
                LibraryOptions{},  // once they have been read
                &say,
                &is_suppressed,
                [] {
                  record_suppressions(&g_recorder);
                  record_rules(&g_recorder);
                },
                &g_device_watch,
                &demand,
                &g_pinned_bytes,
                &g_pinned_pages,
                &cuda::device_calls()};
  if (!Start(torch, importing).run()) {
    set_stage(Stage::off);
    return;
  }
  set_stage(Stage::running);
}

void patch_new_objects() noexcept {
  const LoaderCounts counts = loader_counts();
  if (counts.added == g_scanned_added.load(std::memory_order_relaxed) &&
      counts.removed == g_scanned_removed.load(std::memory_order_relaxed)) {
    return;
  }
  look_at_objects();
}

int status_at_end(int status) noexcept {
  const StatusAtEnd ask = g_status_at_end.load(std::memory_order_acquire);
  return ask != nullptr && g_recorder.active() ? ask(status) : status;
}

bool simulation_wants_module() noexcept {
  return g_module_created.load(std::memory_order_acquire) != nullptr;
}

void give_module_to_simulation(void* module) noexcept {
  // A module of two phases would come as its definition, before there is a module. Torch's never was one.
  auto* definition_type = find_in_process("PyModuleDef_Type");
  struct PyObjectHead {
    std::intptr_t references;
    void* type;
  };
  if (static_cast<PyObjectHead*>(module)->type == definition_type) return;
  g_module_created.load(std::memory_order_acquire)(module);
}

}  // namespace devsan

void devsan_set_enabled(int enabled) {
  using namespace devsan;
  if (stage() != Stage::running) return;
  while (!PatchTurn::take()) sched_yield();
  g_patcher.set_enabled(enabled != 0);
  PatchTurn::give_back();
}
