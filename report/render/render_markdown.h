// The report as Markdown, for an issue or a pull request: bounded, and without what should not leave the machine.
#pragma once

#include <string>

#include "report/model/run.h"

namespace devsan::report {

struct MarkdownShown {
  bool notes = false;
  bool suppressed = false;
};

// GitHub's flavour. Texts of the program are in code, where nothing of them is markup, a mention or a reference.
std::string render_markdown(const Report& report, const MarkdownShown& shown);

}  // namespace devsan::report
