"""Ends with 0 when the two reports of scripts/demo are what they should be: check_demo.py BUG.json FIXED.json"""

import json
import pathlib
import sys

WANTED = {
    "kind": "device-mismatch",
    "raised": True,
    "file": "stage3.py",
    "function": "unscale_and_clip_grads",
    "step": 17,
}
ODD_OPERAND = "combined_scale"


def summary(finding):
    where = finding["where"] or {"file": "", "function": ""}
    return {
        "kind": finding["kind"],
        "raised": finding["raised"],
        "file": pathlib.PurePath(where["file"]).name,
        "function": where["function"].rpartition(".")[2],
        "step": finding["step"],
    }


def names_the_operand(finding):
    """The operand itself, or the temporary made from it, with a history that leads back to a site in stage3.py."""
    odd = [operand for operand in finding["operands"] if operand["odd"]]
    return any(ODD_OPERAND in (operand["name"] or "") for operand in odd) or any(
        place["file"].endswith("stage3.py") for operand in odd for place in operand["lineage"])


def main():
    bug, fixed = (json.loads(pathlib.Path(path).read_text()) for path in sys.argv[1:])
    raised = [finding for finding in bug["findings"] if finding["raised"]]
    if [summary(finding) for finding in raised] != [WANTED]:
        sys.exit(f"This is not the finding that was expected.\n  expected: {WANTED}\n  found:    {[summary(f) for f in raised]}")
    if not names_the_operand(raised[0]):
        sys.exit(f"The finding should name {ODD_OPERAND}, or lead back to where it was put on its device.")
    if raised[0]["fix"] is None:
        sys.exit("The finding should propose a change.")
    loud = [finding for finding in fixed["findings"] if finding["severity"] != "note"]
    if loud:
        sys.exit(f"The fixed training should have no finding, but has {[summary(finding) for finding in loud]}.")
    print(f"   20 steps, and no finding. With the bug it stopped at step {WANTED['step']}, in {WANTED['function']}.")


main()
