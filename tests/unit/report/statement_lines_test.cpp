#include "report/model/statement_lines.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace devsan::report {
namespace {

// A frame on the first of these lines, joined with the others.
Frame joined(const std::vector<std::string>& lines) {
  Frame frame;
  frame.file = "model.py";
  frame.line = frame.end_line = 10;
  frame.source = lines.front();
  join_lines(frame, [&](int line) {
    const auto at = static_cast<std::size_t>(line - frame.line);
    return at < lines.size() ? std::string_view(lines[at]) : std::string_view();
  });
  return frame;
}

// The call from a column of its first line to a column of its last one.
Frame call(Frame frame, int column, int end_line, int end_column) {
  frame.column = column;
  frame.end_line = end_line;
  frame.end_column = end_column;
  return frame;
}

TEST_CASE("A statement over several lines reads as one line without comments") {
  const Frame frame = joined({"    loss = criterion(  # of the batch", "        logits,", "        batch['labels'],",
                              "    )  # RAISES", "    loss.backward()"});
  CHECK(frame.statement() == "    loss = criterion(logits, batch['labels'],)");
  CHECK(frame.later_lines.size() == 3);
}

TEST_CASE("A statement of one line stays as it is") {
  CHECK(joined({"x = f(a)  # (", "y = 2"}).joined.empty());
  CHECK(joined({"x = '(' + f(a)", "y = 2"}).joined.empty());
  CHECK(joined({"x = f(a)", ")"}).statement() == "x = f(a)");
}

TEST_CASE("What is never closed, or has a string over several lines, is not joined") {
  CHECK(joined({"x = f(a,"}).joined.empty());
  CHECK(joined({"x = f('''a", "b''')"}).joined.empty());
  CHECK(joined(std::vector<std::string>(40, "x = f(a,")).joined.empty());
}

TEST_CASE("The text of a call is found over all of its lines") {
  const Frame frame = joined({"y = scale * torch.where(", "      mask,", "      values)  + 1"});
  const Frame where = call(frame, 12, 12, 13);
  CHECK(call_text_of(where) == "torch.where(mask, values)");
  CHECK(behind_call(where) == "  + 1");
  CHECK(call_text_of(call(frame, 12, 14, 3)).empty());
  CHECK(call_text_of(call(frame, -1, 12, 13)).empty());
}

TEST_CASE("A later line of a statement is a place of its own") {
  const Frame frame = joined({"out = net(", "    images,", ")"});
  CHECK(later_line(frame, 11)->source == "    images,");
  CHECK_FALSE(later_line(frame, 10));
  CHECK_FALSE(later_line(frame, 13));
}

}  // namespace
}  // namespace devsan::report
