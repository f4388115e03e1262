"""Worker processes over many operators: one that crashes, is silent or cannot run costs what it was at, and no more."""

import sys

import pytest

from harness import ROOT

sys.path.insert(0, str(ROOT / "scripts"))

from op_workers import Workers, listed_exceptions, stale, unlisted  # noqa: E402

# Counts to the end of its share; `spoiled` says at which number something happens to the process.
WORKER = """
import json, os, pathlib, sys, time
options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
index, shards = map(int, options["--shard"].split("/"))
spoiled = json.loads(options["--spoiled"])
print("a line that is none of ours", flush=True)
for number in range(int(options["--start"]), 8):
    if number % shards == index:
        print(json.dumps({"begins": {"number": number, "resume": str(number + 1)}}), flush=True)
        what = spoiled.get(str(number))
        if what == "abort":
            os.abort()
        if what == "silence":
            pathlib.Path(__file__).with_name("silent").touch()
            time.sleep(1e6)
        print(json.dumps({"number": number, "done": True}), flush=True)
        if what == "leave":
            os._exit(3)
"""


@pytest.fixture
def workers(tmp_path):
    script = tmp_path / "worker.py"
    script.write_text(WORKER)

    def make(spoiled="{}", **options):
        return Workers(lambda index, attempt: [sys.executable, script, "--spoiled", spoiled],
                       lambda begun, ended: {"number": begun["number"], "ended": ended}, **options)

    return make


def numbers(results):
    return sorted(line["number"] for line in results)


def test_shares_make_up_the_whole(workers):
    everything = workers()
    assert numbers(everything.run(2, 3, [])) == list(range(8)) and everything.stopped == []


def test_a_crash_costs_what_had_begun(workers):
    spoiled = workers('{"3": "abort", "5": "abort"}')
    results = spoiled.run(1, 1, [])
    assert numbers(results) == list(range(8)) and spoiled.stopped == []
    assert {line["number"]: line["ended"] for line in results if "ended" in line} == {3: -6, 5: -6}


def test_a_process_that_leaves_after_a_result_is_followed_by_another(workers):
    results = workers('{"2": "leave"}').run(1, 1, [])
    assert numbers(results) == list(range(8)) and all(line["done"] for line in results)


def test_a_silent_process_is_ended(workers):
    results = workers('{"4": "silence"}', silence=2).run(2, 2, [])
    assert numbers(results) == list(range(8))
    assert {"number": 4, "ended": "no answer in 2 s"} in results


def test_what_is_there_when_the_time_is_over_is_kept(workers, tmp_path):
    spoiled = workers('{"6": "silence"}')
    spoiled.is_over = (tmp_path / "silent").exists
    assert numbers(spoiled.run(1, 1, [])) == list(range(6))
    assert spoiled.stopped == ["the time was over"]


def test_a_worker_that_cannot_run_is_told_of_with_its_error(tmp_path):
    script = tmp_path / "worker.py"
    script.write_text("raise ImportError('there is no such thing')")
    broken = Workers(lambda index, attempt: [sys.executable, script], None)
    assert broken.run(1, 1, []) == []
    assert len(broken.stopped) == 1 and "status 1" in broken.stopped[0] and "no such thing" in broken.stopped[0]


def test_lists_of_exceptions_must_be_exact(tmp_path):
    path = tmp_path / "exceptions.txt"
    path.write_text("# operator | variant | values | reason\nadd | out | a b? | because\n")
    listed = listed_exceptions(path)
    found = {("add", "out"): {"b": "differs"}, ("mul", "out"): {"a": "differs too"}}
    assert unlisted(found, listed) == ["not listed: mul | out | a | differs too"]
    assert stale(found, listed, lambda operator, variant: {"a", "b"}) == ["listed, but equal now: add | out | a"]
    assert stale(found, listed, lambda operator, variant: {"b"}) == []


def test_an_exception_may_be_one_of_some_releases_alone(tmp_path):
    path = tmp_path / "exceptions.txt"
    path.write_text("add | out | a | before 2.13: it had none\nmul | out | b | since 2.13: it has one\n")
    assert set(listed_exceptions(path, (2, 12))) == {("add", "out")}
    assert set(listed_exceptions(path, (2, 13))) == {("mul", "out")}
