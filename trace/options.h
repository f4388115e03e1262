// The options of a traced process, as DEVSAN_OPTIONS carries them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace devsan::trace {

struct Options {
#define DEVSAN_OPTION(type, name, default_value, help) type name = default_value;
#include "trace/options.def"
#undef DEVSAN_OPTION
};

struct ParsedOptions {
  Options options;
  std::vector<std::string> complaints;  // one sentence each: unknown key, bad value; the rest of the text still counts
};

// `text` is the value of DEVSAN_OPTIONS: key=value pairs separated by ':'; a value with ':' stands in double quotes, in
// which `\"` and `\\` are escapes. Never throws for any input.
ParsedOptions parse_options(std::string_view text);

// The text that parse_options turns back into `options`; only what differs from the defaults.
std::string format_options(const Options& options);

// "8G", "512M", "64K", "123" as bytes; 0 where it is none of these or does not fit.
std::size_t parse_size(std::string_view text);

}  // namespace devsan::trace
