#include "report/wording/live_memory_text.h"

#include <algorithm>
#include <functional>

#include "report/model/frames.h"
#include "report/text/lines.h"
#include "report/text/text_layout.h"
#include "report/text/words.h"

namespace devsan::report {
namespace {

constexpr std::size_t kRows = 6;
constexpr std::size_t kBytesColumns = 9;
constexpr std::size_t kKindColumns = 15;

std::string number_text(std::uint64_t bytes) {
  return "    " + pad_left(bytes_text(bytes), kBytesColumns) + "  ";
}

std::string place_text(const LiveMemory::Row& row) {
  std::string text = row.op;
  if (!row.at.file.empty()) text += " at " + short_place(row.at);
  return text;
}

void append_rows(Lines& lines, const std::vector<LiveMemory::Row>& rows, std::string_view title, const Style& style,
                 const std::function<std::string(const LiveMemory::Row&)>& text) {
  if (rows.empty()) return;
  if (!lines.empty()) lines.emplace_back();
  lines.push_back("  " + painted(style, Paint::strong, title));
  for (std::size_t i = 0; i < std::min(rows.size(), kRows); ++i) {
    lines.push_back(cut_right(number_text(rows[i].bytes) + text(rows[i]), style.width));
  }
  if (rows.size() <= kRows) return;
  std::uint64_t rest = 0;
  for (std::size_t i = kRows; i < rows.size(); ++i) rest += rows[i].bytes;
  lines.push_back(number_text(rest) + std::to_string(rows.size() - kRows) + " more");
}

std::string state_of(const LiveMemory& live) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (live.allocated > 0) add(bytes_text(live.allocated) + " in tensors");
  if (live.reserved > live.allocated) add(bytes_text(live.reserved - live.allocated) + " reserved but in no tensor");
  if (live.free) add(bytes_text(*live.free) + " free");
  if (text.empty()) return text;
  if (live.capacity) text = "Of " + bytes_text(*live.capacity) + ": " + text;
  text += ".";
  if (live.free && live.asked && *live.free < *live.asked) {
    text += " A tensor of up to " + bytes_text(*live.free) + " would have fitted.";
  }
  return text;
}

}  // namespace

std::string live_memory_headline(const Finding& finding) {
  const LiveMemory& live = *finding.live;
  const std::string device = live.device.empty()    ? std::string("a device")
                             : live.device == "cpu" ? std::string("the host")
                                                    : live.device;
  return device + " has no memory for " + (live.asked ? "another " + bytes_text(*live.asked) : finding.op);
}

std::vector<std::string> live_memory_lines(const Finding& finding, const Style& style) {
  Lines lines;
  if (!finding.live) return lines;
  const LiveMemory& live = *finding.live;
  if (const std::string state = state_of(live); !state.empty()) append_wrapped(lines, state, 2, style);
  append_rows(lines, live.by_kind, "What was live", style, [](const LiveMemory::Row& row) {
    return pad_right(std::string(name_of(row.kind)), kKindColumns) + "  " + counted(row.tensors, "tensor");
  });
  append_rows(lines, live.by_place, "By the line that made it", style, [](const LiveMemory::Row& row) {
    return pad_right(std::string(name_of(row.kind)), kKindColumns) + "  " + place_text(row);
  });
  append_rows(lines, live.by_module, "By module, with gradients and optimizer state", style,
              [](const LiveMemory::Row& row) { return row.module; });
  return lines;
}

}  // namespace devsan::report
