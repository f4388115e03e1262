// The report as one page of HTML that needs nothing beside it: viewer/dist/report.html, which is part of the program,
// with the report as data in it.
#pragma once

#include <string>
#include <string_view>

#include "report/model/facts.h"
#include "report/model/run.h"

namespace devsan::report {

// The page without data, as it is built from viewer/.
extern const std::string_view kPage;

std::string render_page(const Report& report, const Sources& sources);

}  // namespace devsan::report
