"""The results of scripts/bench as words: the budgets, the tables, and the section of the document that holds them."""

import pathlib
import re

from bench_callgrind import STEP
from bench_statistics import MET, NOT_MET, NOT_TOLD

MIB = 1 << 20
BEGIN, END = "<!-- results: written by scripts/bench --markdown -->", "<!-- end of results -->"


STEP_NAMES = {"tiny": "tiny step, time", "transformer": "small transformer step, time",
              "host-bound": "host-bound step, time", "GPU-bound": "GPU-bound step, time",
              "graph replay": "replay of a CUDA graph, time"}


def budgets(results: dict) -> list[dict]:
    """What DESIGN.md allows beside what was measured. Of a step the whole interval has to be within."""
    rows = [{"what": STEP_NAMES[name], "measured": step["ratio"], "budget": step["budget"], "unit": "x",
             "verdict": NOT_TOLD if results.get("rehearsal") else step["verdict"]}
            for name, step in results["steps"].items()]

    def add(what: str, measured: float, most: float, unit: str) -> None:
        rows.append({"what": what, "measured": measured, "budget": most, "unit": unit,
                     "verdict": MET if measured <= most else NOT_MET})

    for row in results.get("instructions", []):
        if row["name"] == STEP:
            add("instructions per operator of the tiny step", row["added_per_op"], 120, "")
    if "start" in results:
        start = results["start"]
        add("import torch", start["import_ms"], 150, "ms")
        add("memory (VmRSS)", start["rss"] / MIB, 64, "MiB")
        add("trace file", start["trace_bytes"] / MIB, 32, "MiB")
    if "cuda_calls" in results:
        add("a CUDA allocation call, added", results["cuda_calls"]["ns_added"], 300, "ns")
    return rows


def number(value: float, unit: str = "") -> str:
    digits = 3 if unit == "x" else 1
    return f"{value:.{digits}f}" + (" " + unit if unit not in ("", "x") else "x" if unit else "")


def budget_lines(results: dict) -> list[str]:
    lines = [f"{'Budgets':46}{'measured':>12}{'at most':>12}", "-" * 80]
    for row in results["budgets"]:
        measured, most = number(row["measured"], row["unit"]), number(row["budget"], row["unit"])
        most = "nothing" if (row["unit"], row["budget"]) == ("x", 1) else most
        lines.append(f"{row['what']:46}{measured:>12}{most:>12}{row['verdict']:>10}")
    return lines


def span(interval: list[float] | None, digits: int) -> str:
    return "too few" if interval is None else f"{interval[0]:.{digits}f} - {interval[1]:.{digits}f}"


def step_lines(results: dict) -> list[str]:
    lines = [f"{'Steps, devsan':14}{'off':>10}{'on':>10}{'ratio':>10}{'95 % interval':>17}{'rounds':>8}{'of CPU':>10}",
             "-" * 80]
    for name, step in results["steps"].items():
        lines.append(f"{name:14}{step['ms_off']:7.2f} ms{step['ms_on']:7.2f} ms{step['ratio']:9.4f}x"
                     f"{span(step['interval'], 4):>17}{step['rounds']:8}{step['cpu_ratio']:9.3f}x")
    return lines + [not_narrow(name, step) for name, step in results["steps"].items() if not step["narrow"]]


def not_narrow(name: str, step: dict) -> str:
    """Said of a step whose time was over before its interval was as narrow as it should be."""
    if step["interval"] is None:
        return f"{name}: no interval, the time was over"
    reached = (step["interval"][1] - step["interval"][0]) / 2
    return (f"{name}: the time was over with {reached * 100:.2f} % either way, not {step['width'] * 100:.2f} %")


def operator_lines(results: dict) -> list[str]:
    if not results["operators"]:
        return []
    counted = {row["name"]: row for row in results.get("instructions", [])}
    lines = [f"{'Operators, devsan':24}{'operands':>8}{'off':>9}{'added':>9}{'95 % interval':>17}{'instr.':>9}",
             "-" * 80]
    for op in results["operators"]:
        low, high = op["interval"]
        instructions = f"{counted[op['name']]['added_per_op']:.0f}" if op["name"] in counted else "-"
        lines.append(f"{op['name']:24}{op['operands']:8}{op['ns_off']:6.0f} ns{op['ns_added']:6.0f} ns"
                     f"{f'{low:.0f} - {high:.0f}':>17}{instructions:>9}")
    return lines


def rival_lines(results: dict) -> list[str]:
    rivals = results.get("rivals") or {}
    if not rivals:
        return []
    titles = {"dispatch-mode": "dispatch", "debug-mode": "DebugMode", "record-function": "Record-",
              "memory-history": "memory"}
    under = {"dispatch-mode": "mode", "record-function": "Function", "memory-history": "history"}
    columns = {"devsan": results} | rivals
    lines = [f"{'Beside others':24}" + "".join(f"{titles.get(name, name):>11}" for name in columns),
             " " * 24 + "".join(f"{under.get(name, ''):>11}" for name in columns), "-" * 80]
    for at, op in enumerate(results["operators"]):
        added = (side["operators"][at]["ns_added"] for side in columns.values())
        lines.append(f"{op['name']:24}" + "".join(f"{nanoseconds:8.0f} ns" for nanoseconds in added))
    for name in results["steps"]:
        cells = (f"{side['steps'][name]['ratio']:.3f}x" if name in side["steps"] else "-" for side in columns.values())
        lines.append(f"{name:24}" + "".join(f"{cell:>11}" for cell in cells))
    return lines


def start_lines(results: dict) -> list[str]:
    start = results.get("start")
    if not start:
        return []
    return ["Start-up and memory, added", "-" * 80,
            f"import torch {start['import_ms']:.0f} ms ({start['import_cpu_ms']:.0f} ms of processor time), "
            f"the whole process {start['process_ms']:.0f} ms",
            f"VmRSS {start['rss'] / MIB:.1f} MiB, VmHWM {start['peak_rss'] / MIB:.1f} MiB, "
            f"mapped {start['mapped'] / MIB:.1f} MiB",
            f"trace file {start['trace_bytes'] / MIB:.1f} MiB, {start['trace_disk_bytes'] / MIB:.1f} MiB on disk"]


def cuda_call_lines(results: dict) -> list[str]:
    calls = results.get("cuda_calls")
    if not calls:
        return []
    return ["CUDA's allocation calls", "-" * 80,
            f"cuMemAlloc, cuMemFree {calls['ns_off']:.0f} ns a call, added {calls['ns_added']:.0f} ns "
            "(a stand-in for the driver)"]


def instruction_lines(results: dict, most: int = 16) -> list[str]:
    for row in results.get("instructions", []):
        if row["name"] == STEP:
            head = (f"{row['operator_calls']} operators, {row['wrapper_calls']} wrapped, "
                    f"{row['outermost_calls']} outermost")
            lines = [f"{'Instructions of the tiny step, by function':60}{'per op':>10}{'calls':>10}", "-" * 80]
            shown = sorted(row["by_function"], key=lambda entry: -abs(entry["instructions"]))[:most]
            for entry in shown:
                lines.append(f"{entry['function'][:58]:60}{entry['instructions']:10.2f}{entry['calls']:10.2f}")
            rest = row["added_per_op"] - sum(entry["instructions"] for entry in shown)
            return [*lines, f"{'all others':60}{rest:10.2f}", f"{head:60}{row['added_per_op']:10.2f}",
                    f"{'for each that is wrapped':60}{row['added_per_wrapped_op']:10.2f}"]
    return []


def render(results: dict) -> str:
    machine = results["machine"]
    place = results.get("gpu") or "cpu, one thread"
    head = [f"{results['date']}, torch {results['torch']}, Python {results['python']}, {place}",
            f"{machine['cpu']}, {machine['cores']} cores, load {machine['load']:.1f} at the start"
            + (" (quick run)" if results["quick"] else "")]
    if results.get("rehearsal"):
        head.append("a rehearsal on simulated devices: no figure here means anything")
    parts = [head, budget_lines(results), step_lines(results), operator_lines(results), rival_lines(results),
             start_lines(results), cuda_call_lines(results), instruction_lines(results), [f"skipped: {text}" for text in results["skipped"]]]
    return "\n\n".join("\n".join(part) for part in parts if part)


def rewrite(document: pathlib.Path, text: str) -> None:
    """Puts the tables between the markers; adds these at the end where the document has none."""
    old = document.read_text() if document.exists() else ""
    section = f"{BEGIN}\n```text\n{text}\n```\n{END}"
    new, found = re.subn(re.escape(BEGIN) + ".*?" + re.escape(END), lambda _: section, old, flags=re.S)
    document.write_text(new if found else f"{old.rstrip()}\n\n{section}\n".lstrip())
