// Tracebacks that an exception carries as text: DataLoader workers, threads of nn.DataParallel and spawned processes
// hand on what was raised there in the message of another exception.
#pragma once

#include <optional>
#include <string_view>

namespace devsan::hooks {

struct TracebackText {
  std::string_view heading;    // what stands before it: "Caught KeyError in DataLoader worker process 1"
  std::string_view exception;  // the first line of what was raised: "KeyError: 'no image 40'"
  std::string_view file;  // the innermost line outside installed code, else the innermost; empty where there is none
  std::string_view line;  // its number
  std::string_view function;
};

// None where the text has no traceback.
std::optional<TracebackText> traceback_in(std::string_view text) noexcept;

}  // namespace devsan::hooks
