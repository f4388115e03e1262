#include "preload/plt_patcher.h"

#include <dlfcn.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "preload/process_maps.h"
#include "tests/unit/preload/toys/toy_math.h"

namespace {

using devsan::PltPatcher;
using Operation = int (*)(int, int);

class Library {
 public:
  explicit Library(const char* name) : path_(std::string(DEVSAN_TOYS "/lib") + name + ".so") {
    // Lazily, unless the library itself wants otherwise.
    handle_ = dlopen(path_.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (handle_ == nullptr) FAIL(dlerror());
  }
  ~Library() { dlclose(handle_); }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  template <typename Function = Operation>
  Function function(const char* name) const {
    return reinterpret_cast<Function>(dlsym(handle_, name));
  }
  devsan::ElfImage image() const {
    const auto* object = static_cast<const link_map*>(handle_);
    return {object->l_addr, object->l_ld};
  }

  // The protections of what is mapped of the file, in order.
  std::vector<int> protections() const {
    std::vector<int> found;
    devsan::for_each_mapping(0, [&](const devsan::Mapping& mapping) {
      if (path_ == mapping.path) found.push_back(mapping.protection);
      return true;
    });
    return found;
  }

 private:
  std::string path_;
  void* handle_ = nullptr;
};

// Patches with the wrappers of toy_hooks, and leaves everything as it was.
class Patched {
 public:
  Patched() : patcher_(std::make_unique<PltPatcher>()) {
    auto* attach = hooks_.function<devsan::HooksAttach>("devsan_hooks_attach");
    REQUIRE(patcher_->start(*attach(nullptr), hooks_.image()));
  }
  ~Patched() { patcher_->set_enabled(false); }
  Patched(const Patched&) = delete;
  Patched& operator=(const Patched&) = delete;
  PltPatcher* operator->() { return patcher_.get(); }

 private:
  Library hooks_{"toy_hooks"};
  std::unique_ptr<PltPatcher> patcher_;
};

}  // namespace

TEST_CASE("calls through slots of every kind reach the wrapper, and the real function when switched off") {
  const char* name = GENERATE("toy_caller_lazy", "toy_caller_now", "toy_caller_without_plt");
  const bool bound_before = GENERATE(true, false);
  CAPTURE(name, bound_before);
  Library caller(name);
  const auto add = caller.function("call_add");
  const auto multiply = caller.function("call_multiply");
  if (bound_before) REQUIRE(add(2, 3) == 5);
  const std::vector<int> protections = caller.protections();

  Patched patched;
  CHECK(patched->scan());
  CHECK(patched->slots() >= 2);
  CHECK(add(2, 3) == 5 + toy::kWrapped);
  CHECK(multiply(2, 3) == 6 + toy::kWrapped);

  patched->set_enabled(false);
  CHECK(add(2, 3) == 5);
  CHECK(multiply(2, 3) == 6);

  patched->set_enabled(true);
  CHECK(add(2, 3) == 5 + toy::kWrapped);
  CHECK(caller.protections() == protections);
  CHECK(patched->objects_refused() == 0);
}

TEST_CASE("a function's address that is kept as a value is not replaced") {
  Library caller("toy_caller_now");
  Patched patched;
  patched->scan();
  CHECK(caller.function("call_add")(2, 3) == 5 + toy::kWrapped);
  CHECK(caller.function("call_stored")(2, 3) == 5);
}

TEST_CASE("a function that is called through tables is replaced in them where its entry says so") {
  Library caller("toy_caller_now");
  const auto subtract = caller.function("call_in_table");
  Patched patched;
  patched->scan();
  CHECK(subtract(5, 3) == 2 + toy::kWrapped);
  patched->set_enabled(false);
  CHECK(subtract(5, 3) == 2);
}

TEST_CASE("an entry of a table is replaced where it is, in the object that has it, and that keeps its protection") {
  Library math("toy_math");
  const auto remainder = math.function("call_in_own_table");
  const std::vector<int> protections = math.protections();
  Patched patched;
  patched->scan();
  CHECK(remainder(5, 3) == 2 + toy::kWrapped);
  CHECK(math.protections() == protections);
  patched->set_enabled(false);
  CHECK(remainder(5, 3) == 2);
}

TEST_CASE("a function that the hooks do not link is replaced by its name") {
  Library caller(GENERATE("toy_caller_lazy", "toy_caller_now", "toy_caller_without_plt"));
  const auto divide = caller.function("call_divide");
  Patched patched;
  patched->scan();
  CHECK(divide(6, 3) == toy::kWrapped);
  patched->set_enabled(false);
  CHECK(divide(6, 3) == 2);
}

TEST_CASE("a function that waits for a demand is replaced everywhere but in its own object until there is one") {
  Library math("toy_math");
  Library caller(GENERATE("toy_caller_lazy", "toy_caller_now", "toy_caller_without_plt"));
  const auto inside = math.function("scale_inside");
  const auto outside = caller.function("call_scale");
  Patched patched;
  patched->scan();
  CHECK(inside(2, 3) == 6);
  CHECK(outside(2, 3) == 6 + toy::kWrapped);

  patched->demand();
  CHECK(patched->scan());
  CHECK(inside(2, 3) == 6 + toy::kWrapped);
  CHECK(outside(2, 3) == 6 + toy::kWrapped);

  patched->set_enabled(false);
  CHECK(inside(2, 3) == 6);
  CHECK(outside(2, 3) == 6);
  patched->set_enabled(true);
  CHECK(inside(2, 3) == 6 + toy::kWrapped);
}

TEST_CASE("a demand while everything is switched off counts once it is switched on") {
  Library math("toy_math");
  Patched patched;
  patched->scan();
  patched->set_enabled(false);
  patched->demand();
  patched->scan();
  CHECK(math.function("scale_inside")(2, 3) == 6);
  patched->set_enabled(true);
  CHECK(math.function("scale_inside")(2, 3) == 6 + toy::kWrapped);
}

TEST_CASE("a slot that leads to another object's function of that name is left alone") {
  Library caller("toy_caller_of_other");
  Patched patched;
  patched->scan();
  CHECK(caller.function("call_add")(2, 3) == 5 + toy::kOther);
}

TEST_CASE("an object that is loaded later is patched at the next look, also when it comes back") {
  Patched patched;
  patched->scan();
  const std::size_t before = patched->slots();
  for (int round = 0; round < 3; ++round) {
    CAPTURE(round);
    {
      Library caller("toy_caller_now");
      if (round < 2) patched->scan();
      // In the last round nobody looked while it was away, and it lies where it lay.
      if (round == 2) {
        CHECK(caller.function("call_add")(2, 3) == 5);
        patched->scan();
      }
      CHECK(caller.function("call_add")(2, 3) == 5 + toy::kWrapped);
      CHECK(patched->slots() > before);
    }
    if (round == 0) {
      patched->scan();
      CHECK(patched->slots() == before);
    }
  }
}

TEST_CASE("an object that is loaded while switched off is patched when switched on") {
  Patched patched;
  patched->scan();
  patched->set_enabled(false);
  Library caller("toy_caller_now");
  patched->scan();
  CHECK(caller.function("call_add")(2, 3) == 5);
  patched->set_enabled(true);
  CHECK(caller.function("call_add")(2, 3) == 5 + toy::kWrapped);
}

TEST_CASE("threads that call through a slot while it changes get one function or the other") {
  Library now("toy_caller_now");
  Library lazy("toy_caller_lazy");
  Patched patched;
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (const Library* library : {&now, &lazy}) {
    threads.emplace_back([&, add = library->function("call_add")] {
      while (!stop.load(std::memory_order_relaxed)) {
        const int sum = add(2, 3);
        if (sum != 5 && sum != 5 + toy::kWrapped) ++wrong;
      }
    });
  }
  patched->scan();
  for (int i = 0; i < 500; ++i) patched->set_enabled(i % 2 == 1);
  stop.store(true);
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}
