"""The pictures of the page in the documentation: taken in a browser, of real runs of the programs in docs/examples.

`--write-pictures` takes them anew; else they are compared with the page as it is.
"""

import base64
import os
import subprocess

import pytest

from browser import chromium, visit  # noqa: F401 (fixture)
from harness import ROOT, Runner, need_simulated_devices

PICTURES = ROOT / "docs/pictures"
SCHEMES = ("light", "dark")
SIZE = {"width": 1280, "height": 800}  # CSS pixels
SCALE = 1.5
# Mean of the differences of gray, of 255, of both pictures shrunk to 64 x 40. Times and other fonts make up to 2, another
# view 10 and more. A busy machine draws other bars in charts: 6 was seen with them.
MOST_DIFFERENCE = 5
MOST_WITH_CHARTS = 9

CHARTS = """() => [...document.querySelectorAll("canvas")].map(chart => chart.getBoundingClientRect()).map(
  box => [box.x / innerWidth, box.y / innerHeight, box.width / innerWidth, box.height / innerHeight])"""

# `blank` is what is left out: x, y, width and height as parts of the picture.
DIFFERENCE = """async ([one, other, blank]) => {
  const gray = async (picture) => {
    const image = new Image();
    image.src = "data:image/png;base64," + picture;
    await image.decode();
    const canvas = new OffscreenCanvas(64, 40);
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0, 64, 40);
    for (const [x, y, width, height] of blank) context.fillRect(64 * x, 40 * y, 64 * width, 40 * height);
    const data = context.getImageData(0, 0, 64, 40).data;
    return [image.naturalWidth, image.naturalHeight, Array.from({length: 64 * 40}, (_, i) => (data[4 * i] + data[4 * i + 1] + data[4 * i + 2]) / 3)];
  };
  const [a, b] = [await gray(one), await gray(other)];
  if (a[0] !== b[0] || a[1] !== b[1]) return 255;
  return a[2].reduce((sum, value, i) => sum + Math.abs(value - b[2][i]), 0) / a[2].length;
}"""


class Examples:
    """Runs programs of docs/examples as the documentation says, and writes their pages."""

    def __init__(self, devsan, python, folder):
        self.devsan = devsan
        self.folder = folder / "project"
        self.folder.mkdir()
        path = f"{python.parent}:{os.environ['PATH']}"
        self.environment = Runner(devsan, python, folder).environment({"PATH": path, "OMP_NUM_THREADS": "1"})

    def page(self, program, devices, *command):
        (self.folder / program).write_text((ROOT / "docs/examples" / program).read_text())
        out, page = self.folder / f"{program}.out", self.folder / f"{program}.html"
        run = [self.devsan, "run", "--quiet", "--sim", str(devices), "--out", out, "--", *command, program]
        done = subprocess.run(run, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 1 and "Expected all tensors to be on the same device" in done.stderr, done.stderr
        subprocess.run([self.devsan, "view", out, "--html", page], check=True, timeout=60)
        return page


@pytest.fixture(scope="module")
def pages(devsan, python, tmp_path_factory):
    need_simulated_devices(python)
    examples = Examples(devsan, python, tmp_path_factory.mktemp("pictures"))
    return {
        "findings": (examples.page("train.py", 1, "python"), ""),
        "timeline": (examples.page("ranks.py", 4, "torchrun", "--nproc-per-node=4"), "#view=timeline"),
    }


def difference(visited, one, other, blank=()):
    return visited.page.evaluate(DIFFERENCE, [*(base64.b64encode(picture).decode() for picture in (one, other)), blank])


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("view", ["findings", "timeline"])
def test_the_pictures_in_the_documentation_show_the_page_as_it_is(pages, chromium, request, view, scheme):
    page, address = pages[view]
    stored = PICTURES / f"{view}-{scheme}.png"
    with visit(chromium, page, address, color_scheme=scheme, device_scale_factor=SCALE) as visited:
        visited.page.set_viewport_size(SIZE)
        taken = visited.page.screenshot()
        charts = visited.page.evaluate(CHARTS)
        assert bool(charts) == (view == "timeline")
        if request.config.getoption("write_pictures"):
            PICTURES.mkdir(exist_ok=True)
            stored.write_bytes(taken)
        visited.page.goto("about:blank")
        found = difference(visited, taken, stored.read_bytes(), charts), difference(visited, taken, stored.read_bytes())
        anew = "pytest --write-pictures takes them anew"
        assert found[0] < MOST_DIFFERENCE and found[1] < MOST_WITH_CHARTS, f"{found}: {anew}"


def test_a_picture_of_another_view_or_in_other_colors_is_told_apart(chromium, tmp_path):
    blank = tmp_path / "blank.html"
    blank.write_text("<main>nothing</main>")
    pictures = [(PICTURES / f"{view}-{scheme}.png").read_bytes() for view in ("findings", "timeline") for scheme in SCHEMES]
    with visit(chromium, blank) as visited:
        for i, one in enumerate(pictures):
            assert difference(visited, one, one) == 0
            assert all(difference(visited, one, other) > MOST_WITH_CHARTS for other in pictures[i + 1:])
