#include "report/text/text_layout.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace devsan::report {
namespace {

constexpr std::string_view kEllipsis = "…";
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

struct Range {
  std::uint32_t first;
  std::uint32_t last;
};

// Marks that are drawn over the character before them, and joiners.
constexpr std::array<Range, 14> kZeroWidth = {{{0x0300, 0x036F},
                                               {0x0483, 0x0489},
                                               {0x0591, 0x05BD},
                                               {0x0610, 0x061A},
                                               {0x064B, 0x065F},
                                               {0x093C, 0x093C},
                                               {0x094D, 0x094D},
                                               {0x0E31, 0x0E3A},
                                               {0x1AB0, 0x1AFF},
                                               {0x1DC0, 0x1DFF},
                                               {0x200B, 0x200F},
                                               {0x20D0, 0x20FF},
                                               {0xFE00, 0xFE0F},
                                               {0xFE20, 0xFE2F}}};

// East Asian wide and fullwidth characters, and emoji.
constexpr std::array<Range, 14> kWide = {{{0x1100, 0x115F},
                                          {0x231A, 0x231B},
                                          {0x2E80, 0x303E},
                                          {0x3041, 0x33FF},
                                          {0x3400, 0x4DBF},
                                          {0x4E00, 0x9FFF},
                                          {0xA000, 0xA4CF},
                                          {0xAC00, 0xD7A3},
                                          {0xF900, 0xFAFF},
                                          {0xFE30, 0xFE6F},
                                          {0xFF00, 0xFF60},
                                          {0xFFE0, 0xFFE6},
                                          {0x1F300, 0x1FAFF},
                                          {0x20000, 0x3FFFD}}};

template <std::size_t N>
bool within(const std::array<Range, N>& ranges, std::uint32_t code) {
  return std::ranges::any_of(ranges, [&](const Range& range) { return code >= range.first && code <= range.last; });
}

std::size_t sequence_length(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead < 0xE0) return 2;
  if (lead >= 0xE0 && lead < 0xF0) return 3;
  if (lead >= 0xF0 && lead < 0xF5) return 4;
  return 0;
}

// The character at the start of `text`; 0 columns and the length 1 where it is none.
struct Decoded {
  std::uint32_t code = 0;
  std::size_t length = 1;
  bool valid = false;
};

Decoded decode(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  const std::size_t length = sequence_length(lead);
  if (length == 0 || text.size() < length) return {};
  std::uint32_t code = length == 1 ? lead : lead & (0x7Fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xC0) != 0x80) return {};
    code = code << 6 | (next & 0x3Fu);
  }
  const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (overlong || surrogate || code > 0x10FFFF) return {};
  return {code, length, true};
}

bool is_control(std::uint32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0);
}

void append_columns(std::string& line, const std::vector<Glyph>& glyphs, std::size_t columns) {
  for (const Glyph& glyph : glyphs) {
    if (glyph.columns > columns) return;
    columns -= glyph.columns;
    line += glyph.bytes;
  }
}

std::string last_columns(const std::vector<Glyph>& glyphs, std::size_t columns) {
  std::size_t first = glyphs.size();
  while (first > 0 && glyphs[first - 1].columns <= columns) columns -= glyphs[--first].columns;
  std::string text;
  for (; first < glyphs.size(); ++first) text += glyphs[first].bytes;
  return text;
}

bool is_place(std::string_view word) {
  return word.find('/') != word.npos;
}

// One word after the other; a word that fits no line is cut into pieces that do.
class LineFiller {
 public:
  LineFiller(std::size_t columns, Places places) : columns_(std::max<std::size_t>(columns, 1)), places_(places) {}

  void add_word(std::string_view word) {
    const std::size_t width = columns_of(word);
    if (used_ > 0 && used_ + 1 + width <= columns_) {
      lines_.back() += ' ';
      ++used_;
    } else if (used_ > 0 || lines_.empty()) {
      start_line();
    }
    const bool whole = places_ == Places::whole && is_place(word);
    for (const Glyph& glyph : glyphs_of(word)) {
      if (used_ + glyph.columns > columns_ && !whole) start_line();
      lines_.back() += glyph.bytes;
      used_ += glyph.columns;
    }
  }
  void start_line() {
    lines_.emplace_back();
    used_ = 0;
  }
  std::vector<std::string> take() { return std::move(lines_); }

 private:
  std::size_t columns_;
  Places places_;
  std::size_t used_ = 0;
  std::vector<std::string> lines_;
};

constexpr std::string_view kBlanks = " \t\r";

// Code in backquotes is one word, if it fits a line at all.
std::size_t end_of_word(std::string_view line, std::size_t word, std::size_t columns) {
  const std::size_t end = std::min(line.find_first_of(kBlanks, word), line.size());
  if (std::ranges::count(line.substr(word, end - word), '`') % 2 == 0) return end;
  const std::size_t quote = line.find('`', end);
  if (quote == line.npos) return end;
  const std::size_t closed = std::min(line.find_first_of(kBlanks, quote), line.size());
  return columns_of(line.substr(word, closed - word)) <= columns ? closed : end;
}

}  // namespace

std::vector<Glyph> glyphs_of(std::string_view text) {
  std::vector<Glyph> glyphs;
  glyphs.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Decoded decoded = decode(text.substr(at));
    Glyph glyph{text.substr(at, decoded.length), at, 1};
    if (!decoded.valid) {
      glyph.bytes = kReplacement;
    } else if (is_control(decoded.code)) {
      glyph.bytes = " ";
    } else if (within(kZeroWidth, decoded.code)) {
      glyph.columns = 0;
    } else if (within(kWide, decoded.code)) {
      glyph.columns = 2;
    }
    glyphs.push_back(glyph);
    at += decoded.length;
  }
  return glyphs;
}

std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  for (const Glyph& glyph : glyphs_of(text)) columns += glyph.columns;
  return columns;
}

std::string printable(std::string_view text) {
  std::string shown;
  for (const Glyph& glyph : glyphs_of(text)) shown += glyph.bytes;
  return shown;
}

std::string cut_right(std::string_view text, std::size_t columns) {
  const auto glyphs = glyphs_of(text);
  if (columns_of(text) <= columns || columns == 0) return printable(text);
  std::string cut;
  append_columns(cut, glyphs, columns - 1);
  return cut.append(kEllipsis);
}

std::string cut_middle(std::string_view text, std::size_t columns) {
  if (columns_of(text) <= columns || columns < 3) return printable(text);
  const auto glyphs = glyphs_of(text);
  std::string cut;
  append_columns(cut, glyphs, (columns - 1) / 2);
  return cut.append(kEllipsis).append(last_columns(glyphs, columns - 1 - (columns - 1) / 2));
}

std::string cut_path(std::string_view path, std::size_t columns) {
  if (columns_of(path) <= columns) return printable(path);
  for (std::size_t slash = path.find('/', 1); slash != path.npos; slash = path.find('/', slash + 1)) {
    const std::string_view tail = path.substr(slash);
    if (columns_of(tail) + 1 <= columns) return std::string(kEllipsis) + printable(tail);
  }
  const auto slash = path.rfind('/');
  return cut_middle(slash == path.npos ? path : path.substr(slash + 1), columns);
}

std::string pad_left(const std::string& text, std::size_t columns) {
  const std::size_t taken = columns_of(text);
  return std::string(columns - std::min(columns, taken), ' ') + text;
}

std::string pad_right(std::string text, std::size_t columns) {
  const std::size_t used = columns_of(text);
  if (used < columns) text.append(columns - used, ' ');
  return text;
}

std::vector<std::string> wrap(std::string_view text, std::size_t columns, Places places) {
  LineFiller filler(columns, places);
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    if (begin > 0) filler.start_line();
    for (std::size_t word = text.find_first_not_of(kBlanks, begin); word < end;) {
      const std::size_t past = end_of_word(text.substr(0, end), word, columns);
      filler.add_word(text.substr(word, past - word));
      word = text.find_first_not_of(kBlanks, past);
    }
    begin = end + 1;
  }
  return filler.take();
}

}  // namespace devsan::report
