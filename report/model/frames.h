// Code positions of a trace as frames of a report.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "report/model/finding.h"
#include "trace/reader.h"

namespace devsan::report {

Frame frame_of(const trace::TraceFile& trace, const trace::Position& position);
// The innermost position outside torch; none where the site is unknown.
std::optional<Frame> user_frame_of(const trace::TraceFile& trace, trace::SiteId site);
// Of the calls that led to a step or a copy, which names the innermost one.
std::vector<Frame> call_frames_of(const trace::TraceFile& trace, trace::LineageId call);
// The innermost position of all; none where the site is unknown.
std::optional<Frame> innermost_frame_of(const trace::TraceFile& trace, trace::SiteId site);
std::vector<Frame> frames_of(const trace::TraceFile& trace, std::span<const trace::FrameRecord> records);

// "/a/b.py" -> "b.py"
std::string_view base_name(std::string_view path);
// "stage3.py:2117"
std::string short_place(const Frame& frame);

bool same_line(const Frame& one, const Frame& other);

}  // namespace devsan::report
