#include "trace/options.h"

#include <catch2/catch.hpp>
#include <random>

namespace devsan::trace {
namespace {

bool same(const Options& a, const Options& b) {
  bool equal = true;
#define DEVSAN_OPTION(type, name, default_value, help) equal = equal && a.name == b.name;
#include "trace/options.def"
#undef DEVSAN_OPTION
  return equal;
}

TEST_CASE("an empty text leaves every option at its default") {
  const ParsedOptions parsed = parse_options("");
  CHECK(parsed.complaints.empty());
  CHECK(same(parsed.options, Options()));
  CHECK(format_options(parsed.options).empty());
}

TEST_CASE("each pair sets its option and the last of two wins") {
  const ParsedOptions parsed = parse_options("enabled=0:sim=2:out=/tmp/a b:sim_memory=8G:quiet=true:sim=4");
  CHECK(parsed.complaints.empty());
  CHECK_FALSE(parsed.options.enabled);
  CHECK(parsed.options.sim == 4);
  CHECK(parsed.options.out == "/tmp/a b");
  CHECK(parsed.options.sim_memory == "8G");
  CHECK(parsed.options.quiet);
}

TEST_CASE("a quoted value may hold colons, quotes and backslashes") {
  const ParsedOptions parsed = parse_options(R"(out="/a:b\"c\\d\e":sim=1)");
  CHECK(parsed.complaints.empty());
  CHECK(parsed.options.out == R"(/a:b"c\d\e)");
  CHECK(parsed.options.sim == 1);
}

TEST_CASE("what is wrong gets one sentence and the rest still counts") {
  const auto [text, word] = GENERATE(table<std::string, std::string>({
      {"sim=two", "'two'"},
      {"sim=-1", "whole number"},
      {"sim=99999999999", "whole number"},
      {"sim=", "whole number"},
      {"enabled=maybe", "not 0 or 1"},
      {"colour=red", "unknown option 'colour'"},
      {"=red", "unknown option ''"},
      {"halt", "has no value"},
      {"out=\"never closed", "is not closed"},
      {"out=\"closed\"late", "expected"},
      {"trace_size=1M", "between 2M and 32M"},
      {"trace_size=0", "is not a size"},
      {"sim_memory=lots", "is not a size"},
  }));
  INFO(text);
  for (const std::string& whole : {text + ":quiet=1", "quiet=1:" + text}) {
    const ParsedOptions parsed = parse_options(whole);
    REQUIRE(parsed.complaints.size() == 1);
    CHECK(parsed.complaints[0].find(word) != std::string::npos);
    CHECK(parsed.options.quiet);
    Options expected;
    expected.quiet = true;
    CHECK(same(parsed.options, expected));
  }
}

TEST_CASE("complaints are few, short and printable whatever the text") {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "\x1b[31m" + std::string(500, '\xff') + ":";
  const ParsedOptions parsed = parse_options(text);
  REQUIRE(parsed.complaints.size() == 11);
  CHECK(parsed.complaints.back().find("990 more") != std::string::npos);
  for (const std::string& complaint : parsed.complaints) {
    CHECK(complaint.size() < 200);
    CHECK(complaint.find('\x1b') == std::string::npos);
  }
}

std::string random_text(std::mt19937& random, std::string_view alphabet) {
  std::string text(random() % 60, ' ');
  for (char& c : text) c = alphabet.empty() ? static_cast<char>(random()) : alphabet[random() % alphabet.size()];
  return text;
}

TEST_CASE("random bytes are parsed to options that survive being written and parsed again") {
  std::mt19937 random(20240601);
  for (int i = 0; i < 20000; ++i) {
    const std::string text = random_text(random, i % 2 == 0 ? "" : "out=sim:\"\\1");
    const ParsedOptions first = parse_options(text);
    const ParsedOptions second = parse_options(format_options(first.options));
    REQUIRE(second.complaints.empty());
    REQUIRE(same(second.options, first.options));
  }
}

TEST_CASE("options with any string in them survive being written and parsed") {
  std::mt19937 random(7);
  for (int i = 0; i < 5000; ++i) {
    Options options;
    options.enabled = random() % 2 == 0;
    options.sim = static_cast<int>(random() % 100);
    options.out = random_text(random, i % 2 == 0 ? "" : ":\"\\=a");
    options.hooks = random_text(random, ":\"\\=a");
    const ParsedOptions parsed = parse_options(format_options(options));
    REQUIRE(parsed.complaints.empty());
    REQUIRE(same(parsed.options, options));
  }
}

TEST_CASE("sizes are read with their unit, and what is no size is 0") {
  CHECK(parse_size("123") == 123);
  CHECK(parse_size("64K") == 65536);
  CHECK(parse_size("2m") == 2u << 20);
  CHECK(parse_size("8G") == std::size_t{8} << 30);
  CHECK(parse_size("1T") == std::size_t{1} << 40);
  CHECK(parse_size("18446744073709551615") == ~std::size_t{0});
  for (const char* text :
       {"", "G", "8GB", "-1", "+1", " 1", "1 ", "1.5G", "0x10", "18446744073709551616", "18014398509481984K", "8E"}) {
    INFO(text);
    CHECK(parse_size(text) == 0);
  }
}

}  // namespace
}  // namespace devsan::trace
