#include "preload/process_rules.h"

#include <cerrno>
#include <cstring>
#include <new>
#include <string_view>

#include "preload/given_file.h"
#include "trace/compiled_rules.h"

namespace devsan {
namespace {

struct Given {
  std::string text;  // of the file, behind its first line
  std::string source;
  std::string expect_not;
};

alignas(Given) constinit unsigned char g_rules_memory[sizeof(Given)] = {};
constinit const Given* g_rules = nullptr;

}  // namespace

std::vector<std::string> load_rules(const std::string& path, const std::string& expect_not) noexcept {
  if (path.empty() && expect_not.empty()) return {};
  std::vector<std::string> complaints;
  Given given{{}, {}, expect_not};
  std::string text;
  if (!path.empty() && !read_given_file(path, trace::kMaxCompiledRules, &text)) {
    char reason[128];
    complaints.push_back(path + ": " + strerror_r(errno, reason, sizeof reason) + "; no rules are judged");
  } else if (!path.empty() && !text.starts_with(trace::kCompiledRulesMark)) {
    complaints.push_back(path + ": not compiled; write it with devsan rules compile");
  } else if (!path.empty()) {
    const std::size_t end = text.find('\n');
    given.source = text.substr(trace::kCompiledRulesMark.size(), end - trace::kCompiledRulesMark.size());
    given.text = end == std::string::npos ? std::string() : text.substr(end + 1);
  }
  g_rules = new (g_rules_memory) Given(std::move(given));
  return complaints;
}

void record_rules(trace::Recorder* recorder) noexcept {
  if (g_rules == nullptr) return;
  if (!g_rules->expect_not.empty()) recorder->add_run_info("expect_not", g_rules->expect_not);
  trace::for_each_compiled_rule(g_rules->text, [recorder](std::int32_t line, std::string_view rule) {
    recorder->add_rule(g_rules->source, line, rule);
  });
}

}  // namespace devsan
