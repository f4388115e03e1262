"""A pytest plugin for scripts/torch_tests: runs the tests of a list, and writes each outcome down as soon as it is known."""

import json
import pathlib
import re

# What differs from run to run in a message that otherwise says the same.
VARYING = [
    (re.compile(r"0x[0-9a-fA-F]+"), "0x…"),
    (re.compile(r"/tmp/\S+"), "/tmp/…"),
    (re.compile(r"\d+\.\d+ ?(s|ms|seconds)\b"), "… s"),
]
WORST_FIRST = ("failed", "xpassed", "skipped", "xfailed", "passed")


def pytest_addoption(parser):
    parser.addoption("--outcomes", help="the file that outcomes are appended to, one JSON object a line")
    parser.addoption("--tests-of", help="a file with the node ids to run, one a line")


def pytest_configure(config):
    if config.getoption("--outcomes"):
        config.pluginmanager.register(Outcomes(pathlib.Path(config.getoption("--outcomes"))))


def pytest_collection_modifyitems(config, items):
    chosen = config.getoption("--tests-of")
    if chosen is None:
        return
    order = {name: place for place, name in enumerate(pathlib.Path(chosen).read_text(encoding="utf-8").splitlines())}
    items[:] = sorted((item for item in items if item.nodeid in order), key=lambda item: order[item.nodeid])


def outcome_of(report):
    if hasattr(report, "wasxfail"):
        return "xfailed" if report.skipped else "xpassed"
    return report.outcome


def reason_of(report):
    """The last line of what went wrong, without what varies."""
    if not report.failed:
        return ""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else str(report.longrepr)
    lines = [line for line in text.splitlines() if line.strip()]
    first = lines[0] if lines else ""
    for pattern, instead in VARYING:
        first = pattern.sub(instead, first)
    return first[:300]


class Outcomes:
    def __init__(self, path):
        self.file = path.open("a", encoding="utf-8")
        self.reports = []

    def write(self, **line):
        self.file.write(json.dumps(line) + "\n")
        self.file.flush()

    def pytest_runtest_logstart(self, nodeid):
        self.reports = []
        self.write(began=nodeid)

    def pytest_runtest_logreport(self, report):
        self.reports.append(report)

    def pytest_runtest_logfinish(self, nodeid):
        outcomes = {outcome_of(report) for report in self.reports}
        reasons = [reason for report in self.reports if (reason := reason_of(report))]
        self.write(test=nodeid, outcome=next(name for name in WORST_FIRST if name in outcomes),
                   reason=reasons[0] if reasons else "", seconds=round(sum(r.duration for r in self.reports), 2))

    def pytest_sessionfinish(self):
        self.write(ended=True)
