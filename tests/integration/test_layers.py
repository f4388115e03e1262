"""Which folders may include which: the rooms of the hooks and of the report are layers, and the bridge to torch is above
those of the hooks."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ARCHITECTURE = (ROOT / "docs/architecture.md").read_text()


def rooms_of(heading):
    """The rooms that the table of a chapter names, the lowest first."""
    chapter = ARCHITECTURE.split(f"## {heading}", 1)[1].split("\n## ", 1)[0]
    return re.findall(r"^\| `(\w+)/` \|", chapter, re.M)


ROOMS, REPORT_ROOMS = rooms_of("hooks/"), rooms_of("report/")
INCLUDE = re.compile(r'^#include "([^"]+)/[^/"]+"', re.M)
TORCH_HEADER = re.compile(r"^#include <(?:ATen|c10|torch)/", re.M)
TYPE = re.compile(r"^(?:struct|class|enum class) (?:alignas\([^)]*\) )?(\w+)[^;{]*\{", re.M)


def sources(folder):
    return [path for path in sorted((ROOT / folder).rglob("*")) if path.suffix in (".h", ".cpp", ".def")]


def included_folders(path):
    return set(INCLUDE.findall(path.read_text()))


@pytest.mark.parametrize("folder, rooms", [("hooks/inprocess", ROOMS), ("report", REPORT_ROOMS)])
def test_every_room_stands_in_the_table_of_the_architecture(folder, rooms):
    assert sorted(rooms) == sorted(path.name for path in (ROOT / folder).iterdir() if path.is_dir())


@pytest.mark.parametrize("folder, room, rooms, beside", [
    *(("hooks/inprocess", room, ROOMS, {"trace", "preload"}) for room in ROOMS),
    *(("report", room, REPORT_ROOMS, {"trace", "rules"}) for room in REPORT_ROOMS),
])
def test_a_room_includes_only_those_below_it(folder, room, rooms, beside):
    allowed = {f"{folder}/{below}" for below in rooms[:rooms.index(room) + 1]} | beside
    wrong = {str(path.relative_to(ROOT)): sorted(included_folders(path) - allowed)
             for path in sources(f"{folder}/{room}") if not included_folders(path) <= allowed}
    assert not wrong


def test_what_is_prebuilt_includes_no_header_of_torch():
    found = sources("hooks/inprocess")
    assert found and not [path for path in found if TORCH_HEADER.search(path.read_text())]


@pytest.mark.parametrize("folder, allowed", [
    ("trace", {"trace"}),
    ("preload", {"preload", "trace"}),
    ("sim", {"sim", "preload", "trace"}),
    ("doctor", {"preload", "doctor", *(f"doctor/{path.name}" for path in (ROOT / "doctor").iterdir() if path.is_dir())}),
    ("rules", {"rules", "trace", "doctor"}),
    ("hooks/torch_bridge", {"hooks/torch_bridge", "preload", "trace"} | {f"hooks/inprocess/{room}" for room in ROOMS}),
])
def test_libraries_include_only_what_is_before_them_on_the_path_of_the_data(folder, allowed):
    wrong = {str(path.relative_to(ROOT)): sorted(included_folders(path) - allowed)
             for path in sources(folder) if not included_folders(path) <= allowed}
    assert not wrong


def test_no_two_headers_of_the_hooks_define_a_type_of_one_name():
    """They are in one namespace and one library: of inline functions of two such types the linker would keep one."""
    defined = {}
    for path in sources("hooks"):
        for name in TYPE.findall(path.read_text() if path.suffix == ".h" else ""):
            defined.setdefault(name, set()).add(path.name)
    assert len(defined) > 100 and not {name: paths for name, paths in defined.items() if len(paths) > 1}
