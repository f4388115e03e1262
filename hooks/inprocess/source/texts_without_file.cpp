#include "hooks/inprocess/source/texts_without_file.h"

#include <array>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "hooks/inprocess/common/busy.h"
#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/common/spin_guard.h"
#include "hooks/inprocess/common/thread_state.h"
#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/interpreter/command_code.h"
#include "hooks/inprocess/interpreter/own_attributes.h"
#include "hooks/inprocess/interpreter/python_api.h"
#include "hooks/inprocess/source/archive_member.h"
#include "hooks/inprocess/source/notebook_cells.h"
#include "hooks/inprocess/source/source_files.h"

namespace devsan::hooks {

namespace {

constexpr std::size_t kMaxTextBytes = std::size_t{1} << 20;

// Texts are found by their names, which mean one text as long as the process lives: those of cells have its digest.
class KnownTexts {
 public:
  // None where the name was never asked for; an empty text where nothing was found.
  std::optional<std::string_view> find(trace::StringId file) const noexcept {
    const std::size_t count = count_.load(std::memory_order_acquire);
    for (std::size_t k = 0; k < count; ++k) {
      if (entries_[k].file == file) return std::string_view(entries_[k].text, entries_[k].size);
    }
    return std::nullopt;
  }

  // The text as it is kept; empty where there is no more room.
  std::string_view add(trace::StringId file, std::string_view text) noexcept {
    if (text.size() > kMaxTextBytes || count_.load(std::memory_order_relaxed) == kMaxTexts) return {};
    char* copy = static_cast<char*>(std::malloc(text.size() + 1));
    if (copy == nullptr) return {};
    text.copy(copy, text.size());
    if (put({file, copy, text.size()})) return {copy, text.size()};
    std::free(copy);
    return {};
  }

 private:
  struct Entry {
    trace::StringId file = trace::StringId::none;
    const char* text = nullptr;
    std::size_t size = 0;
  };
  static constexpr std::size_t kMaxTexts = 512;

  bool put(const Entry& entry) noexcept {
    const SpinGuard guard(lock_);
    const std::size_t count = count_.load(std::memory_order_relaxed);
    if (!guard.held() || count == kMaxTexts) return false;
    entries_[count] = entry;
    count_.store(count + 1, std::memory_order_release);
    return true;
  }

  std::array<Entry, kMaxTexts> entries_{};
  std::atomic<std::size_t> count_{0};
  std::atomic_flag lock_ = ATOMIC_FLAG_INIT;
};

constinit KnownTexts known_texts{};

bool has_gil() noexcept {
  return runtime.has_python && interpreter_lives() && python.PyGILState_GetThisThreadState() != nullptr &&
         python.PyGILState_Check() != 0;
}

// linecache.cache: name -> (size, time, lines, full name), or what would have to be called for the lines.
std::string text_in_linecache(std::string_view name) {
  const OwnAttributes linecache = attributes_of_module("linecache");
  const void* lines = tuple_entry(dict_entry(linecache["cache"], name), 2);
  std::string text;
  if (lines != nullptr && is_list(lines)) {
    const auto* items = field<const void* const*>(lines, kListItems);
    std::string buffer(std::size_t{64} << 10, 0);
    for (std::ptrdiff_t k = 0; k < size_of(lines) && text.size() < kMaxTextBytes; ++k) {
      const std::string_view line = text_of(items[k], buffer.data(), buffer.size());
      text += line;
      if (!line.ends_with('\n')) text += '\n';
    }
  }
  return text;
}

// Code that torch and the interpreter make by themselves has a name each, and no text that a person knows.
bool may_have_text(trace::StringId file) noexcept {
  const std::string_view name = runtime.recorder->string(file);
  return !name.starts_with("<frozen ") && !name.starts_with("<eval_with_key");
}

// What is no name of linecache's.
std::string text_elsewhere(std::string_view name) {
  if (name == kCommandFile) return text_of_command();
  if (name == kInputFile) return text_of_input();
  return name.starts_with('/') ? archive_member(name) : std::string();
}

std::string_view look_for(trace::StringId file) {
  const std::string name(runtime.recorder->string(file));
  std::string text = text_elsewhere(name);
  if (text.empty() && !has_gil()) return {};
  if (text.empty()) {
    const PythonSection section;
    text = text_in_linecache(name);
    if (!text.empty()) name_notebook_cell(file, name);
  }
  return known_texts.add(file, text);
}

// Lines that were asked for without the GIL. Who comes when there is no more room goes without.
class WantedLines {
 public:
  void add(trace::StringId file, int line) noexcept {
    {
      const SpinGuard guard(lock_);
      if (!guard.held() || count_ == kMaxLines) return;
      lines_[count_++] = {file, line};
    }
    if (!queued_.exchange(true) && python.Py_AddPendingCall(&keep_wanted, nullptr) != 0) queued_.store(false);
  }

 private:
  struct Line {
    trace::StringId file;
    int line;
  };
  static constexpr std::size_t kMaxLines = 256;

  // On the main thread, with the GIL.
  static int keep_wanted(void*) noexcept;

  std::array<Line, kMaxLines> lines_{};
  std::size_t count_ = 0;
  std::atomic_flag lock_ = ATOMIC_FLAG_INIT;
  std::atomic<bool> queued_{false};
};

constinit WantedLines wanted_lines{};

int WantedLines::keep_wanted(void*) noexcept {
  std::array<Line, kMaxLines> lines;
  std::size_t count = 0;
  wanted_lines.queued_.store(false);
  {
    const SpinGuard guard(wanted_lines.lock_);
    if (!guard.held()) return 0;
    lines = wanted_lines.lines_;
    count = std::exchange(wanted_lines.count_, 0);
  }
  ThreadState& state = thread_state();
  if (state.busy) return 0;
  const PythonSection section;
  const Busy busy(state);
  SourceFiles files;
  for (std::size_t k = 0; k < count; ++k) files.keep(lines[k].file, lines[k].line);
  return 0;
}

}  // namespace

std::string_view text_without_file(trace::StringId file) noexcept {
  if (!runtime.has_python || !may_have_text(file)) return {};
  if (const auto known = known_texts.find(file)) return *known;
  try {
    return look_for(file);
  } catch (const std::exception&) {  // lines are worth no failure
    return {};
  }
}

void keep_line_soon(trace::StringId file, int line) noexcept {
  if (!runtime.has_python || !interpreter_lives() || has_gil()) return;
  if (!may_have_text(file) || known_texts.find(file)) return;
  wanted_lines.add(file, line);
}

}  // namespace devsan::hooks
