// Sentences about collectives, and about the rank that failed first.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/model/finding.h"
#include "report/model/run.h"
#include "report/text/style.h"

namespace devsan::report {

// "entered all_reduce of 4.0 KiB float32 on cuda:0"
std::string entered_text(std::string_view op, std::uint64_t bytes, std::string_view dtype, std::string_view device);

// Where the thread that ran an operator last ran it, the last line of the program that it ran one in, and what that
// operator was.
std::optional<Frame> last_place_of(const Process& process);
std::optional<Frame> last_own_place_of(const Process& process);
std::string last_operator_text(const Process& process);

// "ranks 0-2 waited in all_reduce 1187, which rank 3 never entered"
std::string collective_headline(const Finding& finding);
// What each rank did, those that did the same together.
std::vector<std::string> collective_lines(const CollectiveStory& story, const Style& style);

// "rank 3 failed first, in step 12: it raised ValueError: …"
std::string first_failure_text(const FirstFailure& failure);
// "ranks 0-2 then waited in all_reduce 1187, entered from train.py:88"; empty where none did. Of ranks that never
// entered what the others waited in, the first text tells, and this one who gave up first.
std::string then_waited_text(const FirstFailure& failure);

// "in attempt 0 rank 3 failed first, in step 12: it raised ValueError: …, at train.py:88"
std::string earlier_failure_text(const EarlierFailure& failure);
// One for each of the newest attempts among them; the first tells of how many more there were.
std::vector<std::string> earlier_failure_texts(const std::vector<EarlierFailure>& failures);

}  // namespace devsan::report
