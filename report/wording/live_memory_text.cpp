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
constexpr std::uint64_t kWorthALine = 100;  // a share of what was in tensors

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

void append_kinds_and_places(Lines& lines, const std::vector<LiveMemory::Row>& kinds,
                             const std::vector<LiveMemory::Row>& places, std::string_view title, const Style& style) {
  append_rows(lines, kinds, title, style, [](const LiveMemory::Row& row) {
    return pad_right(std::string(name_of(row.kind)), kKindColumns) + "  " + counted(row.tensors, "tensor");
  });
  append_rows(lines, places, "By the line that made it", style, [](const LiveMemory::Row& row) {
    return pad_right(std::string(name_of(row.kind)), kKindColumns) + "  " + place_text(row);
  });
}

// "cuda:0 had 6.9 GiB in tensors when the backward of step 3 began. The most it ever had was 7.4 GiB, in that
// backward."
std::string peak_text(const PeakMemory& peak) {
  const std::string step = std::to_string(peak.step);
  std::string text = peak.device.empty() ? std::string("The host") : peak.device;
  text += " had " + bytes_text(peak.allocated > 0 ? peak.allocated : peak.listed) + " in tensors when ";
  if (peak.moment == trace::PeakMoment::backward_begins) text += "the backward of step " + step + " began.";
  if (peak.moment == trace::PeakMoment::backward_ended) text += "the backward of step " + step + " was over.";
  if (peak.moment == trace::PeakMoment::none) text += "step " + step + " began.";
  if (!peak.peak || *peak.peak <= peak.allocated) return text;
  text += " The most it ever had was " + bytes_text(*peak.peak) + ", ";
  return text + (peak.in_backward ? "in" : "before") + " the backward of step " + std::to_string(peak.peak_step) + ".";
}

}  // namespace

std::string live_memory_headline(const Finding& finding) {
  const LiveMemory& live = *finding.live;
  const std::string device = live.device.empty()    ? std::string("a device")
                             : live.device == "cpu" ? std::string("the host")
                                                    : live.device;
  return device + " has no memory for " + (live.asked ? "another " + bytes_text(*live.asked) : finding.op);
}

std::string room_text(const LiveMemory& live) {
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

std::vector<std::string> peak_memory_lines(const PeakMemory& peak, const Style& style) {
  Lines lines;
  append_wrapped(lines, peak_text(peak), 2, style);
  append_kinds_and_places(lines, peak.by_kind, peak.by_place, "In tensors", style);
  const std::uint64_t unlisted = peak.allocated - std::min(peak.allocated, peak.listed);
  if (unlisted > peak.allocated / kWorthALine) {
    append_wrapped(lines, bytes_text(unlisted) + " more is in no tensor that an operator was seen to make.", 2, style);
  }
  return lines;
}

std::vector<std::string> live_memory_lines(const Finding& finding, const Style& style) {
  Lines lines;
  if (!finding.live) return lines;
  const LiveMemory& live = *finding.live;
  if (const std::string room = room_text(live); !room.empty()) append_wrapped(lines, room, 2, style);
  append_kinds_and_places(lines, live.by_kind, live.by_place, "What was live", style);
  append_rows(lines, live.by_module, "By module, with gradients and optimizer state", style,
              [](const LiveMemory::Row& row) { return row.module; });
  return lines;
}

}  // namespace devsan::report
