// What devsan itself has to say to the person at the terminal: single lines on stderr, "devsan: …".
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace devsan::launch {

// A sentence for a person about something that cannot go on.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The same, where the command line is at fault.
struct UsageError : Failure {
  using Failure::Failure;
};

void say(std::string_view text);
void warn(std::string_view text);

// A line that is drawn over again while something takes long. Where stderr is no terminal, only the first text and the
// last are written, each on a line of its own.
class Progress {
 public:
  explicit Progress(bool quiet);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void start(std::string_view text);
  void update(std::string_view text);
  void finish(std::string_view text);
  void clear();  // removes what was drawn, before something else is written

  bool quiet() const { return quiet_; }

 private:
  void draw(std::string_view text);

  bool quiet_;
  bool terminal_;
  bool drawn_ = false;
};

}  // namespace devsan::launch
