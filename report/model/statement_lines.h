// Statements that go on in more than one line, as one text.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "report/model/finding.h"

namespace devsan::report {

// Fills `joined` and `later_lines` where brackets stay open at the end of `frame.source`, from the lines behind it up
// to the one that closes them. Does nothing where that is not among the next ones. `line_of` is empty for a line that
// was not kept.
void join_lines(Frame& frame, const std::function<std::string_view(int line)>& line_of);

// The call of a frame as it is written, in one line; empty where its columns are not known. Lives as long as the frame.
std::string_view call_text_of(const Frame& frame);
// What stands behind the call in its statement.
std::string_view behind_call(const Frame& frame);

// The line of a frame's statement, other than its first, as a frame of its own, without columns. None where the
// statement does not go on to it.
std::optional<Frame> later_line(const Frame& frame, int line);

}  // namespace devsan::report
