#include "launch/messages.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

namespace devsan::launch {
namespace {

spdlog::logger& logger() {
  static const auto instance = [] {
    auto made = std::make_shared<spdlog::logger>("devsan", std::make_shared<spdlog::sinks::stderr_sink_st>());
    made->set_pattern("devsan: %v");
    made->flush_on(spdlog::level::trace);
    return made;
  }();
  return *instance;
}

void write_all(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

std::size_t terminal_width() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 10 ? size.ws_col : 80;
}

bool can_redraw() {
  const char* term = std::getenv("TERM");
  return isatty(STDERR_FILENO) != 0 && term != nullptr && std::string_view(term) != "dumb";
}

}  // namespace

void say(std::string_view text) {
  logger().info("{}", text);
}

void warn(std::string_view text) {
  logger().warn("warning: {}", text);
}

Progress::Progress(bool quiet) : quiet_(quiet), terminal_(can_redraw()) {}

Progress::~Progress() {
  clear();
}

void Progress::start(std::string_view text) {
  if (quiet_) return;
  if (terminal_) {
    draw(text);
  } else {
    say(text);
  }
}

void Progress::update(std::string_view text) {
  if (!quiet_ && terminal_) draw(text);
}

void Progress::finish(std::string_view text) {
  clear();
  if (!quiet_) say(text);
}

void Progress::clear() {
  if (!drawn_) return;
  write_all("\r\033[K");
  drawn_ = false;
}

void Progress::draw(std::string_view text) {
  // One column less than the terminal has: a full line would wrap, and could not be drawn over.
  const std::string line = ("devsan: " + std::string(text)).substr(0, terminal_width() - 1);
  write_all("\r\033[K" + line);
  drawn_ = true;
}

}  // namespace devsan::launch
