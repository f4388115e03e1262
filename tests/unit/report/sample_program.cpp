#include "sample_program.h"

#include <sstream>
#include <stdexcept>

#include "program_findings.h"

namespace devsan::report {

SampleProgram::SampleProgram(std::string text)
    : sources_{{program_findings::kFile, {text.size(), 0, text}}}, codebase_(sources_) {
  std::istringstream stream(text);
  for (std::string one; std::getline(stream, one);) lines_.push_back(one);
}

int SampleProgram::line(std::string_view mark) const {
  const std::string wanted = "  # " + std::string(mark);
  for (std::size_t k = 0; k < lines_.size(); ++k) {
    if (lines_[k].ends_with(wanted)) return static_cast<int>(k) + 1;
  }
  throw std::runtime_error("no such mark: " + std::string(mark));
}

Frame SampleProgram::at(std::string_view mark, const char* function, std::string_view call) const {
  const int number = line(mark);
  std::string source = lines_[static_cast<std::size_t>(number) - 1];
  source.erase(source.rfind("  #"));
  return program_findings::line(number, function, source, std::string(call));
}

Finding SampleProgram::failing(const char* function, std::string_view call, const char* odd, std::vector<Frame> callers,
                               trace::NameKind is) const {
  Finding finding = program_findings::add(odd, is);
  finding.where = at("fails", function, call);
  finding.stack = {*finding.where};
  finding.stack.insert(finding.stack.end(), callers.begin(), callers.end());
  return finding;
}

std::vector<slice::Place> SampleProgram::slice(const Finding& finding) {
  return slice::slice_of(finding, slice::Code(codebase_, finding));
}

std::set<std::string> SampleProgram::roles(const Finding& finding, std::string_view mark) {
  std::set<std::string> roles;
  for (const slice::Place& place : slice(finding)) {
    if (place.side == slice::Side::odd && place.node.line() == line(mark)) roles.emplace(name_of(place.role));
  }
  return roles;
}

}  // namespace devsan::report
