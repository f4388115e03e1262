"""`devsan collect`: the traces of several machines in one directory, in which nothing else is touched."""

import os
import stat
import subprocess

import pytest

from harness import Runner, view

PROGRAM = "import torch; torch.ones(2) + 1"

# Copies what rsync would, from a directory named like the host.
RSYNC = """#!/bin/sh
for word; do from=$into; into=$word; done
host=${{from%%:*}}; path=${{from#*:}}
[ -d "{hosts}/$host$path" ] || {{ echo "rsync: no such directory: $path" >&2; exit 23; }}
cp -rL "{hosts}/$host$path/." "$into"
echo "$@" >> "{hosts}/calls"
"""


@pytest.fixture(scope="module")
def nodes(devsan, python, tmp_path_factory):
    """The directories of two machines, each with the trace of one process."""
    scratch = tmp_path_factory.mktemp("nodes")
    runner = Runner(devsan, python, scratch, start=True)
    made = []
    for rank in range(2):
        out = scratch / f"node{rank}"
        assert runner(PROGRAM, env={"RANK": str(rank), "WORLD_SIZE": "2", "DEVSAN_OPTIONS": ""}, out=out).status == 0
        made.append(out)
    return made


def collect(devsan, *words, status=0, path=None):
    env = {**os.environ, **({"PATH": f"{path}:{os.environ['PATH']}"} if path else {})}
    done = subprocess.run([devsan, "collect", *map(str, words)], capture_output=True, text=True, env=env, timeout=120)
    assert done.returncode == status, done.stdout + done.stderr
    return done


def names(directory):
    return sorted(path.name for path in directory.iterdir())


def test_traces_of_directories_become_one_report(devsan, nodes, tmp_path):
    into = tmp_path / "all"
    done = collect(devsan, *nodes, "--into", into)
    assert done.stdout == f"devsan: 2 traces gathered in {into}\n" and done.stderr == ""
    assert [name.split(".")[0] for name in names(into)] == ["rank0", "rank1"]
    for path in into.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        original = next(node / path.name for node in nodes if (node / path.name).exists())
        assert path.read_bytes() == original.read_bytes()
        assert path.stat().st_blocks * 512 < path.stat().st_size / 4
    processes = view(devsan, *into.iterdir())["run"]["processes"]
    assert sorted(process["rank"] for process in processes) == [0, 1]


def test_gathering_again_copies_nothing_twice(devsan, nodes, tmp_path):
    into = tmp_path / "all"
    collect(devsan, nodes[0], "--into", into)
    done = collect(devsan, *nodes, "--into", into)
    assert done.stdout == f"devsan: 1 trace gathered in {into}, 1 already there\n"
    assert len(names(into)) == 2


def test_another_trace_of_the_same_name_is_kept_beside_the_first(devsan, nodes, tmp_path):
    [trace] = nodes[0].glob("*.devsan")
    [other] = nodes[1].glob("*.devsan")
    namesake = tmp_path / "namesake"
    namesake.mkdir()
    (namesake / trace.name).write_bytes(other.read_bytes())
    into = tmp_path / "all"
    collect(devsan, nodes[0], namesake, "--into", into)
    stem = trace.name.removesuffix(".devsan")
    assert names(into) == sorted([trace.name, f"{stem}-1.devsan"])
    assert (into / trace.name).read_bytes() == trace.read_bytes()


def test_files_that_lie_there_are_not_written_to_nor_followed(devsan, nodes, tmp_path):
    [trace] = nodes[0].glob("*.devsan")
    into = tmp_path / "all"
    into.mkdir()
    precious = tmp_path / "precious"
    precious.write_text("keep me")
    (into / trace.name).symlink_to(precious)
    collect(devsan, nodes[0], "--into", into)
    assert precious.read_text() == "keep me" and (into / trace.name).is_symlink()
    assert len(names(into)) == 2


def test_damage_is_told_and_the_rest_is_gathered(devsan, nodes, tmp_path):
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    [trace] = nodes[0].glob("*.devsan")
    (damaged / trace.name).write_bytes(trace.read_bytes()[:9000])
    (damaged / "rank5.1.devsan").write_text("no trace")
    into = tmp_path / "all"
    done = collect(devsan, damaged, nodes[1], tmp_path / "nowhere", "--into", into, status=1)
    assert "3 traces gathered" in done.stdout
    for told in (trace.name, "rank5.1.devsan: this is not a devsan trace", "nowhere: no such file"):
        assert told.lower() in done.stderr.lower(), done.stderr


@pytest.fixture
def rsync(nodes, tmp_path):
    """A directory with a stand-in for rsync, which finds the hosts' directories here."""
    hosts = tmp_path / "hosts"
    hosts.mkdir()
    for rank, node in enumerate(nodes):
        (hosts / f"host{rank}/tmp").mkdir(parents=True)
        (hosts / f"host{rank}/tmp/out").symlink_to(node)
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "rsync").write_text(RSYNC.format(hosts=hosts))
    (tools / "rsync").chmod(0o755)
    return tools


def test_hosts_are_asked_by_rsync(devsan, rsync, tmp_path):
    into = tmp_path / "all"
    done = collect(devsan, "host0:/tmp/out", "host1:/tmp/out", "--into", into, path=rsync)
    assert done.stdout == f"devsan: 2 traces gathered in {into}\n"
    assert [name.split(".")[0] for name in names(into)] == ["rank0", "rank1"]
    calls = (tmp_path / "hosts/calls").read_text().splitlines()
    assert len(calls) == 2 and all("--include=*.devsan" in call and " -- host" in call for call in calls)


def test_a_host_that_fails_is_told_and_the_others_are_gathered(devsan, rsync, tmp_path):
    into = tmp_path / "all"
    done = collect(devsan, "host0:/nowhere", "host1:/tmp/out", "--into", into, status=1, path=rsync)
    assert "host0:/nowhere: the traces could not be fetched: rsync ended with 23" in done.stderr
    assert [name.split(".")[0] for name in names(into)] == ["rank1"]


def test_wrong_usage_runs_nothing(devsan, nodes, tmp_path):
    collect(devsan, nodes[0], status=2)
    collect(devsan, "--into", tmp_path / "all", status=2)
    assert not (tmp_path / "all").exists()
