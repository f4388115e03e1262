#include "launch/fail_on.h"

#include <catch2/catch.hpp>

#include "launch/messages.h"

using devsan::launch::FailOn;
using devsan::launch::UsageError;
using namespace devsan::report;

namespace {

Finding finding(Kind kind, Severity severity, bool handled = false) {
  Finding made;
  made.kind = kind;
  made.severity = severity;
  made.handled = handled;
  return made;
}

const Finding kError = finding(Kind::device_mismatch, Severity::error);
const Finding kWarning = finding(Kind::async_race, Severity::warning);
const Finding kNote = finding(Kind::mixed_operands, Severity::note);

}  // namespace

TEST_CASE("kinds are matched by their names in the report") {
  const FailOn kinds = FailOn::parse("mixed-operands,async-race");
  CHECK(kinds.matches(kNote));
  CHECK(kinds.matches(kWarning));
  CHECK_FALSE(kinds.matches(kError));
}

TEST_CASE("severities include what is worse") {
  CHECK(FailOn::parse("any").matches(kNote));
  CHECK_FALSE(FailOn::parse("warning").matches(kNote));
  CHECK(FailOn::parse("warning").matches(kError));
  CHECK_FALSE(FailOn::parse("error").matches(kWarning));
  CHECK(FailOn::parse("error").matches(kError));
  CHECK(FailOn::parse("error,warning").matches(kWarning));
  CHECK(FailOn::parse("error,mixed-operands").matches(kNote));
  CHECK(FailOn::parse(" error , mixed-operands").matches(kNote));
}

TEST_CASE("what the program handled is passed over") {
  CHECK_FALSE(FailOn::parse("any").matches(finding(Kind::device_mismatch, Severity::warning, true)));
}

TEST_CASE("an unknown kind is told of with those that are known") {
  CHECK_THROWS_WITH(FailOn::parse("eror"), Catch::Contains("did you mean error?"));
  CHECK_THROWS_WITH(FailOn::parse("error,typo"), Catch::Contains("'typo'") && Catch::Contains("device-mismatch"));
  CHECK_THROWS_AS(FailOn::parse(""), UsageError);
  CHECK_THROWS_AS(FailOn::parse("error,"), UsageError);
  CHECK_THROWS_AS(FailOn::parse("  "), UsageError);
}
