// The man page, in the macros of man(7).
#include <string_view>

#include "launch/reference.h"

namespace devsan::launch {
namespace {

// Text that roff prints as it is: `\` and `-` mean something else to it, and so does a `.` or `'` that begins a line.
std::string escaped(std::string_view text) {
  std::string out;
  if (text.starts_with('.') || text.starts_with('\'')) out = "\\&";
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

std::string bold(std::string_view text) {
  return "\\fB" + escaped(text) + "\\fR";
}

std::string italic(std::string_view text) {
  return "\\fI" + escaped(text) + "\\fR";
}

std::string sentence(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  if (!text.empty() && text.back() != '.') text += '.';
  return escaped(text) + "\n";
}

std::string item(const OptionText& option) {
  std::string head;
  for (const std::string& name : option.names) head += (head.empty() ? "" : ", ") + bold(name);
  if (!option.value.empty()) {
    const std::string value = italic(option.value);
    head += (head.empty() ? "" : " ") + (option.value_may_lack ? "[" + value + "]" : value);
  }
  return ".TP\n" + head + "\n" + sentence(option.help);
}

std::string synopsis(const CommandText& command) {
  std::string line = ".B devsan " + command.name + "\n[" + italic("OPTIONS") + "]";
  if (command.takes_command) line += " " + bold("--") + " " + italic("CMD") + " [" + italic("ARGUMENTS") + "...]";
  for (const OptionText& positional : command.positionals) {
    line += " " + italic(positional.value) + (positional.is_list ? "..." : "");
  }
  return line + "\n";
}

std::string command_section(const CommandText& command) {
  std::string text = ".SS devsan " + command.name + "\n" + sentence(command.help);
  for (const OptionText& positional : command.positionals) text += item({{}, positional.value, false, positional.help});
  for (const OptionText& option : command.options) text += item(option);
  if (!command.footer.empty()) text += ".PP\n" + sentence(command.footer);
  return text;
}

std::string traced_options() {
  std::string text;
#define DEVSAN_OPTION(type, option, default_value, help) text += item({{#option}, "", false, help});
#include "trace/options.def"
#undef DEVSAN_OPTION
  return text;
}

std::string example(std::string_view command, std::string_view meaning) {
  return ".TP\n" + bold(command) + "\n" + sentence(std::string(meaning));
}

constexpr char kDescription[] = R"(.SH DESCRIPTION
devsan is a runtime sanitizer for PyTorch programs.
It reports which tensor is on the wrong device, how it got there, and which line to change.
The program itself is not modified, and its output, exceptions and exit status stay the same.
.PP
A report goes to standard error at the first finding, and a summary at the end.
Each process writes one trace file;
.B devsan view
reads them later, on any machine.
)";

constexpr char kEnvironment[] = R"(.SH ENVIRONMENT
.TP
.B DEVSAN_OPTIONS
Options of a traced process, as
.IR key = value : key = value .
.B devsan run
sets it from its flags.
A value that contains a colon is written in double quotes.
The options are:
.RS
)";

constexpr char kVariables[] = R"(.RE
.TP
.B LD_PRELOAD
Names the library that
.B devsan lib
prints.
.B devsan run
sets it for the command and its child processes.
.TP
.B DEVSAN_HOOKS_PATH
Directories with hooks, separated by colons.
devsan searches them before its installation and the cache.
.TP
.B XDG_CACHE_HOME
Directory of the cache. The default is
.IR ~/.cache .
.TP
.B CXX
The C++ compiler of
.BR "devsan build" .
.TP
.B NO_COLOR
Turns off colors.
)";

constexpr char kFiles[] = R"(.SH FILES
.TP
.IR devsan\-out / time \- pid /rank R . pid .devsan
One trace file for each process, in a directory for each run.
.I R
is the rank, or a hyphen outside a distributed run.
.TP
.I ~/.cache/devsan
Hooks that were compiled for a torch. The directory can be deleted at any time.
)";

constexpr char kStatus[] = R"(.SH EXIT STATUS
.TP
.B 0
Success. For
.BR "devsan run" ,
the status of the command.
.TP
.B 1
.BR "devsan view" :
no trace could be read, or the report could not be written.
.BR "devsan diff" :
the second run has findings that the first has not.
.BR "devsan collect" :
a trace could not be gathered, or not be read.
.BR "devsan doctor" :
an error was found.
.BR "devsan learn" :
no trace could be read, or no module was seen.
.BR "devsan rules diff" :
the files differ.
.TP
.B 2
The command line, the file of suppressions or that of rules is wrong. Nothing was run.
.BR "devsan diff" :
a run could not be read.
.TP
.B 66
.BR "devsan run" :
the command exited with 0, and it had a finding that
.B \-\-fail\-on
names; or
.B \-\-halt
ended it.
.BR "devsan preflight" :
something was found.
.TP
.B 69
.BR "devsan preflight" :
the command could not be simulated.
.TP
.BR 126 ", " 127
.BR "devsan run" :
the command cannot be executed, or was not found.
.TP
\fB128\fR+\fIsignal\fR
.BR "devsan run" :
a signal ended the command.
)";

}  // namespace

std::string man_page(const Reference& reference) {
  std::string page = ".TH DEVSAN 1 \"\" \"devsan " + reference.version + "\" \"User Commands\"\n.nh\n";
  page += ".SH NAME\ndevsan \\- find tensors that are on the wrong device\n.SH SYNOPSIS\n";
  for (const CommandText& command : reference.commands) {
    if (&command != &reference.commands.front()) page += ".br\n";
    page += synopsis(command);
  }
  page += std::string(kDescription) + ".SH OPTIONS\n";
  for (const OptionText& option : reference.options) page += item(option);
  page += ".SH COMMANDS\n";
  for (const CommandText& command : reference.commands) page += command_section(command);
  page += kStatus + std::string(kEnvironment) + traced_options() + kVariables + kFiles + ".SH EXAMPLES\n";
  page += example("devsan run -- python train.py", "Run a training under devsan");
  page +=
      example("devsan run --sim 2 -- python train.py", "The same on a machine without a GPU, with two simulated ones");
  page += example("devsan run --fail-on error -- pytest tests", "Make a test run fail if devsan finds an error");
  page += example("devsan view devsan-out/RUN --json report.json", "Write the findings of a run as JSON");
  page += example("devsan diff baseline.json devsan-out/RUN", "Find out whether a run has anything new");
  page += example("devsan doctor --deepspeed ds_config.json --params 7B", "Check a machine and a config before a run");
  page += example("torchrun --logs-specs=devsan train.py", "Run devsan in the workers of torchrun");
  return page;
}

}  // namespace devsan::launch
