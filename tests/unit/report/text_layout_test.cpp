#include "report/text/text_layout.h"

#include <catch2/catch.hpp>

namespace devsan::report {
namespace {

TEST_CASE("Columns are counted as a terminal shows them") {
  CHECK(columns_of("abc") == 3);
  CHECK(columns_of("größe") == 5);
  CHECK(columns_of("訓練") == 4);
  CHECK(columns_of("e\u0301") == 1);
  CHECK(columns_of("\U0001F680") == 2);
  CHECK(columns_of("a\xff\xfe") == 3);
}

TEST_CASE("Control characters and broken text never reach the terminal") {
  CHECK(printable("a\x1b[31mb\nc") == "a [31mb c");
  CHECK(printable("a\xffz") == "a\uFFFDz");
  CHECK(printable("\xE2\x82") == "\uFFFD\uFFFD");
  CHECK(printable("\xC0\x80") == "\uFFFD\uFFFD");
  CHECK(printable("\xED\xA0\x80") == "\uFFFD\uFFFD\uFFFD");
  CHECK(printable("\u009b") == " ");
}

TEST_CASE("What is too long is cut, and says so") {
  CHECK(cut_right("abcdef", 6) == "abcdef");
  CHECK(cut_right("abcdef", 4) == "abc…");
  CHECK(cut_right("訓練済み", 4) == "訓…");
  CHECK(cut_middle("abcdefgh", 5) == "ab…gh");
  CHECK(cut_middle("abc", 5) == "abc");
}

TEST_CASE("A path is cut to its last parts") {
  CHECK(cut_path("/srv/app/model.py", 40) == "/srv/app/model.py");
  CHECK(cut_path("/srv/app/model.py", 14) == "…/app/model.py");
  CHECK(cut_path("/srv/app/model.py", 13) == "…/model.py");
  CHECK(cut_path("/srv/a_very_long_name.py", 9) == "a_ve…e.py");
}

TEST_CASE("Text is wrapped at blanks, and long words where they must") {
  CHECK(wrap("one two three", 8) == std::vector<std::string>{"one two", "three"});
  CHECK(wrap("abcdefghij", 4) == std::vector<std::string>{"abcd", "efgh", "ij"});
  CHECK(wrap("one\ntwo\n\nthree", 20) == std::vector<std::string>{"one", "two", "", "three"});
}

TEST_CASE("A URL or a path may be kept whole, and is then longer than a line") {
  CHECK(wrap("see https://a.b/c now", 8, Places::whole) == std::vector<std::string>{"see", "https://a.b/c", "now"});
  CHECK(wrap("/srv/a/very/long/path/ds.json: fp16", 10, Places::whole) ==
        std::vector<std::string>{"/srv/a/very/long/path/ds.json:", "fp16"});
}

TEST_CASE("Code in backquotes is not broken where it fits a line") {
  CHECK(wrap("down to `1. / scale`.", 14) == std::vector<std::string>{"down to", "`1. / scale`."});
  CHECK(wrap("a `b c d e f` g", 6) == std::vector<std::string>{"a `b c", "d e f`", "g"});
  CHECK(wrap("an open ` quote", 8) == std::vector<std::string>{"an open", "` quote"});
}

}  // namespace
}  // namespace devsan::report
