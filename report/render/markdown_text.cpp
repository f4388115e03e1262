#include "report/render/markdown_text.h"

#include <algorithm>

#include "report/text/masking.h"
#include "report/text/text_layout.h"

namespace devsan::report {
namespace {

std::size_t longest_run(std::string_view text, char c) {
  std::size_t longest = 0;
  std::size_t run = 0;
  for (const char one : text) {
    run = one == c ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return longest;
}

std::string in_one_line(std::string_view text) {
  return printable(masked(text));
}

// A patch needs the tabs of its lines.
std::string printable_line(std::string_view line) {
  std::string shown;
  for (std::size_t at = 0; at <= line.size();) {
    const std::size_t end = std::min(line.find('\t', at), line.size());
    shown += printable(line.substr(at, end - at));
    if (end < line.size()) shown += '\t';
    at = end + 1;
  }
  return shown;
}

std::string fenced(const std::string& line) {
  if (line.empty()) return "";
  const std::string fence(longest_run(line, '`') + 1, '`');
  const bool padded = line.front() == '`' || line.back() == '`' || (line.front() == ' ' && line.back() == ' ');
  return padded ? fence + " " + line + " " + fence : fence + line + fence;
}

// Mentions and references are made of text behind these, escaped or not, unless they stand in code.
void append_plain(std::string& result, char c) {
  constexpr std::string_view kMarkup = "\\*_{}[]<>()!|~&`";
  if (c == '@' || c == '#') {
    result += std::string("`") + c + "`";
  } else {
    if (kMarkup.find(c) != std::string_view::npos) result += '\\';
    result += c;
  }
}

}  // namespace

std::string code_span(std::string_view text) {
  return fenced(in_one_line(text));
}

std::string code_cell(std::string_view text) {
  std::string cell;
  for (const char c : in_one_line(text)) cell += c == '|' ? std::string("\\|") : std::string(1, c);
  return fenced(cell);
}

std::string html_code(std::string_view text) {
  std::string body;
  for (const char c : in_one_line(text)) {
    body += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
  }
  return "<code>" + body + "</code>";
}

std::string code_block(std::string_view language, std::string_view text) {
  std::string body;
  const std::string safe = masked(text);
  for (std::size_t at = 0; at < safe.size();) {
    const std::size_t end = std::min(safe.find('\n', at), safe.size());
    body += printable_line(std::string_view(safe).substr(at, end - at)) + "\n";
    at = end + 1;
  }
  const std::string fence(std::max<std::size_t>(3, longest_run(body, '`') + 1), '`');
  return fence + std::string(language) + "\n" + body + fence + "\n";
}

std::string prose(std::string_view text) {
  const std::string line = in_one_line(text);
  std::string result;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t close = line[at] == '`' ? line.find('`', at + 1) : std::string::npos;
    if (close != std::string::npos && close > at + 1) {
      result += fenced(line.substr(at + 1, close - at - 1));
      at = close + 1;
    } else {
      append_plain(result, line[at++]);
    }
  }
  return result;
}

}  // namespace devsan::report
