#include "patched.h"

#include <algorithm>
#include <stdexcept>

#include "report/fixes/patch.h"
#include "report/program/positions.h"
#include "report/slice/slice.h"

namespace devsan::report::fixes {
namespace {

const std::string kFile = "/p.py";

std::string_view marks_of(std::string_view line) {
  const std::size_t at = line.rfind('#');
  return at == std::string_view::npos ? std::string_view() : line.substr(at + 1);
}

std::string without_marks(std::string_view line) {
  const std::size_t begin = line.find_first_not_of(' ');
  const std::string_view code = line.substr(0, line.rfind("  #"));
  return begin >= code.size() ? "" : std::string(code.substr(begin));
}

Frame frame_at(const program::SourceFile& file, int line) {
  Frame frame;
  frame.file = kFile;
  frame.line = line;
  frame.function = slice::name_of_function(slice::body_of(program::statement_at(file, line)));
  return frame;
}

std::vector<Frame> frames_marked(const program::SourceFile& file, char mark) {
  std::vector<Frame> frames;
  for (int line = 1; line <= file.line_count(); ++line) {
    if (marks_of(file.line_text(line)).find(mark) != std::string_view::npos) frames.push_back(frame_at(file, line));
  }
  return frames;
}

Operand operand(const std::string& name, const std::string& device, trace::NameKind is, bool odd) {
  Operand made;
  made.name = made.text = name;
  made.device = device;
  made.is = is;
  made.shape = {3};
  made.odd = odd;
  return made;
}

void add_steps(Operand& to, const program::SourceFile& file, char mark, trace::How how) {
  for (const Frame& at : frames_marked(file, mark)) {
    LineageStep step;
    step.at = at;
    step.how = how;
    step.device = to.device;
    if (mark == 'c') step.calls = frames_marked(file, 'k');
    to.lineage.push_back(step);
  }
}

Finding finding_of(const Failing& failing, const program::SourceFile& file) {
  Finding finding;
  finding.kind = Kind::device_mismatch;
  finding.raised = true;
  finding.op = failing.op;
  finding.own_device = failing.own_device;
  finding.stack = frames_marked(file, '?');
  if (!finding.stack.empty()) finding.where = finding.stack.front();
  const std::vector<Frame> callers = frames_marked(file, '<');
  finding.stack.insert(finding.stack.end(), callers.begin(), callers.end());
  finding.operands = {operand(failing.other, failing.other_device, failing.other_is, false),
                      operand(failing.odd, failing.odd_device, failing.odd_is, true)};
  finding.operands[0].arg = "self";
  finding.operands[1].arg = failing.odd_arg;
  finding.operands[1].generator = failing.drawn;
  add_steps(finding.operands[0], file, 'C', trace::How::created);
  add_steps(finding.operands[1], file, 'd', trace::How::derived);
  add_steps(finding.operands[1], file, 'm', trace::How::moved);
  // What was moved came from where the other operand is.
  const bool was_moved = !frames_marked(file, 'm').empty();
  add_steps(finding.operands[1], file, 'c', trace::How::created);
  if (was_moved) finding.operands[1].lineage.back().device = failing.other_device;
  return finding;
}

std::string added_lines(const std::string& diff) {
  std::string added;
  std::size_t begin = 0;
  while (begin < diff.size()) {
    const std::size_t end = std::min(diff.find('\n', begin), diff.size());
    const std::string line = diff.substr(begin, end - begin);
    if (line.starts_with('+') && !line.starts_with("+++")) {
      added += (added.empty() ? "" : " | ") + without_marks(std::string_view(line).substr(1));
    }
    begin = end + 1;
  }
  return added;
}

}  // namespace

Patched patched(const Failing& failing) {
  SourceText source;
  source.text = failing.source;
  const Sources sources{{kFile, source}};
  slice::Codebase codebase(sources);
  const program::SourceFile file(kFile, failing.source);
  const std::vector<Frame> changed = frames_marked(file, '!');
  if (changed.size() != 1) throw std::runtime_error("one line is to be marked with !");
  const Finding finding = finding_of(failing, file);
  const slice::Code code(codebase, finding);
  const std::vector<slice::Place> places = slice::slice_of(finding, code);
  for (const ranking::Candidate& one : ranking::candidates_of(finding, code, places)) {
    if (one.line != changed.front().line) continue;
    const auto patch = patch_for(finding, one, code);
    return patch ? Patched{added_lines(patch->diff), patch->text, patch->diff} : Patched{};
  }
  return {};
}

}  // namespace devsan::report::fixes
