// Completions for bash, zsh and fish.
#include <string_view>

#include "launch/reference.h"

namespace devsan::launch {
namespace {

enum class Completes { nothing, files, directories, programs, one_word, list_of_words };

// A value is completed by what --help calls it.
Completes completes(const std::string& value, const ValueWords& words) {
  if (value == "FILE" || value == "DIR|FILE") return Completes::files;
  if (value == "DIR") return Completes::directories;
  if (value == "PY") return Completes::programs;
  if (!words.contains(value)) return Completes::nothing;
  return value == "KINDS" ? Completes::list_of_words : Completes::one_word;
}

std::string joined(const std::vector<std::string>& words, std::string_view separator) {
  std::string text;
  for (const std::string& word : words) text.append(text.empty() ? "" : separator).append(word);
  return text;
}

std::string words_of(const std::string& value, const ValueWords& words) {
  const auto found = words.find(value);
  return found == words.end() ? "" : joined(found->second, " ");
}

std::string names_of(const std::vector<OptionText>& options) {
  std::string text;
  for (const OptionText& option : options) text.append(text.empty() ? "" : " ").append(joined(option.names, " "));
  return text;
}

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
  return text;
}

std::string filled(std::string text, const std::map<std::string, std::string>& parts) {
  for (const auto& [name, part] : parts) text = replaced(std::move(text), "@" + name + "@", part);
  return text;
}

// The options that stand before a command of the user's and take the next word.
std::vector<std::string> names_with_values(const Reference& reference) {
  std::vector<std::string> names;
  for (const CommandText& command : reference.commands) {
    for (const OptionText& option : command.options) {
      if (!command.takes_command || option.value.empty()) continue;
      names.insert(names.end(), option.names.begin(), option.names.end());
    }
  }
  return names;
}

// ---- bash

constexpr char kBash[] = R"(# bash completion for devsan, made from the options of the program

_devsan_words() {
    mapfile -t COMPREPLY < <(compgen -W "$1" -- "$word")
}

_devsan_list() {
    local last=${word##*,}
    mapfile -t COMPREPLY < <(compgen -P "${word%"$last"}" -W "$1" -- "$last")
}

_devsan_paths() {
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen "$1" -- "$word")
}

# Prints the index of the user's command among the words, if it began before the cursor.
_devsan_command_at() {
    local i
    for ((i = 2; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
            --)
                printf '%s' $((i + 1))
                return
                ;;
            @with_values@)
                ((++i))
                [[ ${COMP_WORDS[i]} != "=" ]] || ((++i))
                ;;
            -*) ;;
            *)
                printf '%s' "$i"
                return
                ;;
        esac
    done
}

_devsan_command() {
    if declare -F _command_offset >/dev/null; then
        _command_offset "$1"
    elif ((COMP_CWORD == $1)); then
        mapfile -t COMPREPLY < <(compgen -c -- "$word")
    else
        _devsan_paths -f
    fi
}

_devsan() {
    local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} at
    COMPREPLY=()
    if [[ $word == "=" ]]; then
        word=
    elif [[ $previous == "=" ]]; then
        previous=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    if ((COMP_CWORD == 1)); then
        _devsan_words "@commands@"
        return
    fi
    case ${COMP_WORDS[1]} in
@cases@    esac
}

complete -F _devsan devsan
)";

std::string bash_value(const OptionText& option, const ValueWords& words) {
  const std::string pattern = "            " + joined(option.names, " | ") + ") ";
  switch (completes(option.value, words)) {
    case Completes::nothing:
      return pattern + "return ;;\n";
    case Completes::files:
      return pattern + "_devsan_paths -f; return ;;\n";
    case Completes::directories:
      return pattern + "_devsan_paths -d; return ;;\n";
    case Completes::programs:
      return pattern + "mapfile -t COMPREPLY < <(compgen -c -- \"$word\"); return ;;\n";
    case Completes::one_word:
      return pattern + "_devsan_words \"" + words_of(option.value, words) + "\"; return ;;\n";
    case Completes::list_of_words:
      return pattern + "_devsan_list \"" + words_of(option.value, words) + "\"; return ;;\n";
  }
  return {};
}

std::string bash_case(const CommandText& command, const ValueWords& words) {
  std::string text = "    " + command.name + ")\n";
  if (command.takes_command) {
    text += "        at=$(_devsan_command_at)\n";
    text += "        [[ -z $at ]] || { _devsan_command \"$at\"; return; }\n";
  }
  std::string values;
  for (const OptionText& option : command.options) {
    if (!option.value.empty()) values += bash_value(option, words);
  }
  if (!values.empty()) text += "        case $previous in\n" + values + "        esac\n";
  const std::string options = "_devsan_words \"" + names_of(command.options) + "\"";
  std::string rest;
  if (command.takes_command) rest = "_devsan_command \"$COMP_CWORD\"";
  if (!command.positionals.empty()) rest = "_devsan_paths -f";
  text += rest.empty() ? "        " + options + "\n"
                       : "        if [[ $word == -* ]]; then " + options + "; else " + rest + "; fi\n";
  return text + "        ;;\n";
}

// ---- zsh

std::string zsh_quoted(const std::string& text) {
  return "'" + replaced(text, "'", "'\\''") + "'";
}

std::string zsh_plain(std::string text) {
  for (const char* special : {"\\", "[", "]", ":"})
    text = replaced(std::move(text), special, std::string("\\") + special);
  return text;
}

std::string zsh_action(const std::string& value, const ValueWords& words) {
  switch (completes(value, words)) {
    case Completes::nothing:
      return " ";
    case Completes::files:
      return "_files";
    case Completes::directories:
      return "_files -/";
    case Completes::programs:
      return " _command_names -e";
    case Completes::one_word:
      return "(" + words_of(value, words) + ")";
    case Completes::list_of_words:
      return "_values -s , " + value + " " + words_of(value, words);
  }
  return {};
}

// A value's name, in which colons are none of the specification's, and how it is completed.
std::string zsh_value(const std::string& value, const ValueWords& words) {
  return replaced(value, ":", "\\:") + ":" + zsh_action(value, words);
}

std::string zsh_option(const OptionText& option, const ValueWords& words) {
  std::string text;
  for (const std::string& name : option.names) {
    std::string spec = "(" + joined(option.names, " ") + ")" + name;
    if (!option.value.empty() && name.starts_with("--")) spec += "=";
    spec += "[" + zsh_plain(option.help) + "]";
    if (!option.value.empty()) {
      spec += (option.value_may_lack ? "::" : ":") + zsh_value(option.value, words);
    }
    text += " \\\n      " + zsh_quoted(spec);
  }
  return text;
}

std::string zsh_case(const CommandText& command, const ValueWords& words) {
  std::string text = "    " + command.name + ")\n    _arguments -S";
  for (const OptionText& option : command.options) text += zsh_option(option, words);
  for (const OptionText& positional : command.positionals) {
    text += " \\\n      " + zsh_quoted("*:" + zsh_value(positional.value, words));
  }
  if (command.takes_command) {
    text += " \\\n      " + zsh_quoted("(-):command: _command_names -e") + " \\\n      " +
            zsh_quoted("*::arguments:_normal");
  }
  return text + "\n    ;;\n";
}

constexpr char kZsh[] = R"(#compdef devsan
# zsh completion for devsan, made from the options of the program

local curcontext="$curcontext" state line
local -a subcommands
subcommands=(
@commands@)
_arguments -C@options@ \
  '1:command:->command' \
  '*::argument:->argument'
case $state in
  command) _describe command subcommands ;;
  argument)
    case $line[1] in
@cases@    esac
    ;;
esac
)";

// ---- fish

constexpr char kFish[] = R"(# fish completion for devsan, made from the options of the program

function __devsan_is
    set -l words (commandline -opc)
    test (count $words) -gt 1; and test $words[2] = $argv[1]
end

function __devsan_has_no_command
    test (count (commandline -opc)) -eq 1
end

# What the user's command is completed by, as if it stood alone.
function __devsan_complete_command
    set -l words (commandline -opc)
    set -e words[1..2]
    while set -q words[1]
        switch $words[1]
            case --
                set -e words[1]
                break
            case @with_values@
                set -e words[1]
                set -q words[1]; and set -e words[1]
            case '-*'
                set -e words[1]
            case '*'
                break
        end
    end
    complete -C (string join ' ' -- (string escape -- $words) (commandline -ct))
end

complete -c devsan -f
)";

std::string fish_quoted(const std::string& text) {
  return "'" + replaced(replaced(text, "\\", "\\\\"), "'", "\\'") + "'";
}

std::string fish_value(const OptionText& option, const ValueWords& words) {
  if (option.value.empty()) return {};
  if (option.value_may_lack) return " -F";
  switch (completes(option.value, words)) {
    case Completes::nothing:
      return " -x";
    case Completes::files:
      return " -r -F";
    case Completes::directories:
      return " -x -a '(__fish_complete_directories)'";
    case Completes::programs:
      return " -x -a '(__fish_complete_command)'";
    case Completes::one_word:
      return " -x -a " + fish_quoted(words_of(option.value, words));
    case Completes::list_of_words:
      return " -x -a " + fish_quoted("(__fish_append , " + words_of(option.value, words) + ")");
  }
  return {};
}

std::string fish_option(const OptionText& option, const std::string& condition, const ValueWords& words) {
  std::string text = "complete -c devsan -n " + condition;
  for (const std::string& name : option.names) {
    text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  }
  return text + fish_value(option, words) + " -d " + fish_quoted(option.help) + "\n";
}

}  // namespace

std::string bash_completion(const Reference& reference) {
  std::string commands;
  std::string cases;
  for (const CommandText& command : reference.commands) {
    commands += command.name + " ";
    cases += bash_case(command, reference.words);
  }
  return filled(kBash, {{"with_values", joined(names_with_values(reference), " | ")},
                        {"commands", commands + names_of(reference.options)},
                        {"cases", cases}});
}

std::string zsh_completion(const Reference& reference) {
  std::string commands;
  std::string options;
  std::string cases;
  for (const OptionText& option : reference.options) options += zsh_option(option, reference.words);
  for (const CommandText& command : reference.commands) {
    commands += "  " + zsh_quoted(command.name + ":" + zsh_plain(command.help)) + "\n";
    cases += zsh_case(command, reference.words);
  }
  return filled(kZsh, {{"commands", commands}, {"options", options}, {"cases", cases}});
}

std::string fish_completion(const Reference& reference) {
  std::string text = filled(kFish, {{"with_values", joined(names_with_values(reference), " ")}});
  for (const OptionText& option : reference.options) {
    text += fish_option(option, "__devsan_has_no_command", reference.words);
  }
  for (const CommandText& command : reference.commands) {
    text +=
        "complete -c devsan -n __devsan_has_no_command -a " + command.name + " -d " + fish_quoted(command.help) + "\n";
    const std::string condition = "'__devsan_is " + command.name + "'";
    for (const OptionText& option : command.options) text += fish_option(option, condition, reference.words);
    if (!command.positionals.empty()) text += "complete -c devsan -n " + condition + " -F\n";
    if (command.takes_command) {
      text += "complete -c devsan -n " + condition + " -x -a '(__devsan_complete_command)'\n";
    }
  }
  return text;
}

}  // namespace devsan::launch
