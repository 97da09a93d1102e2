# SPDX-License-Identifier: LGPL-2.1-or-later
"""The page of `subutai report --html` in a browser: what it shows against the trace, by mouse and by keyboard.

usage: report_page.py PAGE TRACE [PICTURES]        output: TAP. PICTURES: a folder for screenshots, to be looked at.

The page is of TRACE, which has all primitives, and of a second trace.
"""

import sys
from pathlib import Path

import numpy
from browser import Page
from points import done, point
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

import subutai
from subutai import lanes
from subutai.report import figures
from subutai.report import timeline as drawn

PAGE, TRACE, *PICTURES = sys.argv[1:]
trace = subutai.load(TRACE)
page = Page(PAGE)
driver = page.driver


def picture(name: str) -> None:
    """A screenshot, to be looked at."""
    if PICTURES:
        driver.save_screenshot(str(Path(PICTURES[0]) / f"{name}.png"))


READY = "return document.querySelector('article:not([hidden])').dataset.ready === 'yes'"
point(page.until(READY), "the page is drawn")
point(page.complaints() == [], "the console has nothing to say")
asked = page.requests()
point(
    len(asked) > 0 and all(url.split(":")[0] in ("file", "blob", "data") for url in asked),
    "nothing was asked for from anywhere",
)
point(len([url for url in asked if url.startswith("file:")]) == 1, "the page is one file")
point(
    page.js("return document.documentElement.lang") == "en" and len(driver.find_elements(By.TAG_NAME, "h1")) == 1,
    "it has a language and one first heading",
)
violations = page.violations()
for violation in violations:
    print(f"# {violation}")
point(violations == [], "axe finds nothing against WCAG: contrast, names, headings, roles")

# ---- the timeline ----
Z = """
const counts = {};
for (const row of document.querySelector('#p0 .timeline').data[0].z) for (const v of row) counts[v] = (counts[v] ?? 0) + 1;
return counts;
"""


def counts() -> dict[int, int]:
    """How many cells of the timeline have each number."""
    return {int(value): n for value, n in page.js(Z).items()}


def of(array: numpy.ndarray) -> dict[int, int]:
    """The same of an array."""
    return {int(value): int(n) for value, n in zip(*numpy.unique(array, return_counts=True), strict=True)}


shape = page.js("const z = document.querySelector('#p0 .timeline').data[0].z; return [z.length, z[0].length]")
threads = trace.threads["thread"].to_list()
point(
    shape[0] == len(threads) and shape[1] <= drawn.MAX_CELLS_A_LANE,
    f"a lane for each thread, {shape[1]} cells each",
)
objects = {o["object"]: o["type"] for o in trace.objects.iter_rows(named=True)}
layer_cells = page.js("return JSON.parse(document.querySelector('#p0 .data').textContent).timeline.layerCells")
expected = lanes.read(trace, threads, shape[1], list(objects), layer_cells)
point(counts() == of(expected.activity), "it has what the threads did")
ticks = page.js("return document.querySelector('#p0 .timeline').layout.yaxis.ticktext")
point(len(ticks) == len(threads), f"lanes have names: {', '.join(ticks)}")
legend = [e.text for e in driver.find_elements(By.CSS_SELECTOR, "#p0 .colours li")]
used = [figures.LABELS[name] for i, name in enumerate(lanes.ACTIVITIES) if name != "absent" and i in counts()]
point(legend == used and "waiting for a mutex" in used, f"and colours a meaning: {', '.join(legend)}")
picture("whole")


def of_object(number: int) -> dict[int, int]:
    """The cells of the timeline with only this object: 0 not there, 1 other things, 2 held, 3 waited for."""
    bits = expected.layer[expected.layer_objects.tolist().index(number)]
    cells = ((numpy.arange(layer_cells) + 0.5) * shape[1] / layer_cells).astype(int).clip(0, shape[1] - 1)
    alive = (expected.activity[:, cells] != 0).astype(int)
    return of(numpy.where(bits & lanes.WAITED, 3, numpy.where(bits & lanes.HELD, 2, alive)))


SELECTED = "return document.querySelector('#p0').dataset.object ?? ''"
mutex = next(o for o, kind in objects.items() if kind == "mutex" and of_object(o).get(3, 0) > 0)
before = counts()
button = driver.find_element(By.CSS_SELECTOR, f"#p0 td button[data-object='{mutex}']")
button.click()
point(
    page.until(f"return document.querySelector('#p0').dataset.object === '{mutex}'"),
    "a click on an object selects it",
)
SHOWN = "return document.querySelector('#p0 .timeline').data[0].colorscale.length === 8"
point(
    page.until(SHOWN) and counts() == of_object(mutex) != before,
    "the timeline shows that object alone",
)
point(
    of_object(mutex).get(2, 0) > 0 and of_object(mutex).get(3, 0) > 0,
    "where it was held, and where it was waited for",
)
point(button.get_attribute("aria-pressed") == "true", "the button says so")
point(
    driver.find_element(By.CSS_SELECTOR, "#p0 .chooser").get_attribute("value") == str(mutex)
    and f"#{mutex}" in driver.find_element(By.CSS_SELECTOR, "#p0 .selected").text
    and f"#{mutex}" in driver.find_element(By.CSS_SELECTOR, "#p0 .selected-name").text,
    "and so do the list of objects and the captions",
)
legend = [e.text for e in driver.find_elements(By.CSS_SELECTOR, "#p0 .colours li")]
point(
    legend == ["waiting for a mutex", "held", "alive, with other things"],
    f"the colours mean: {', '.join(legend)}",
)
picture("one")
button.click()
point(
    page.until("return !('object' in document.querySelector('#p0').dataset)"),
    "one more click: all objects",
)
ALL = f"return document.querySelector('#p0 .timeline').data[0].colorscale.length === {2 * len(lanes.ACTIVITIES)}"
point(page.until(ALL) and counts() == before, "the timeline is as it was")

# ---- by keyboard ----
chooser = driver.find_element(By.CSS_SELECTOR, "#p0 .chooser")
chooser.send_keys(Keys.ARROW_DOWN)
point(
    page.until(f"{SELECTED} !== ''") and page.until(SHOWN),
    "the list of objects, by keys",
)
line = driver.find_element(By.CSS_SELECTOR, "#p0 .timeline")
page.js("arguments[0].focus()", line)
line.send_keys(Keys.ESCAPE)
point(page.until(f"{SELECTED} === ''") and page.until(ALL), "Escape: all objects")
RANGE = "return document.querySelector('#p0 .timeline').layout.xaxis.range"
whole = page.js(RANGE)
line.send_keys("+")
line.send_keys("+")
closer = page.js(RANGE)
point(
    abs((closer[1] - closer[0]) * 4 - (whole[1] - whole[0])) < 1e-9,
    "two times + : a quarter of the time",
)
line.send_keys("0")
point(numpy.allclose(page.js(RANGE), whole), "0: all of it")
for _ in range(2):
    line.send_keys(Keys.ARROW_DOWN)
line.send_keys(Keys.ARROW_RIGHT)
said = driver.find_element(By.CSS_SELECTOR, "#p0 .readout").text
point(
    ticks[2].split("…")[0] in said and ", at " in said,
    f"arrows go through the cells: {said}",
)
columns = page.js("return document.querySelector('#p0 .timeline').layout.shapes[0]")
lane = round((columns["y0"] + columns["y1"]) / 2)
cell = int((columns["x0"] + columns["x1"]) / 2 * 1e9 / expected.to_ns * shape[1])
wanted = expected.object[lane, cell]
line.send_keys(Keys.ENTER)
activity = lanes.ACTIVITIES[expected.activity[lane, cell]]
if activity in ("absent", "running", "join", "outside", "off_cpu"):
    point(page.js(SELECTED) == "", f"Enter in a cell without an object ({activity})")
else:
    point(
        page.until(f"{SELECTED} === '{wanted}'"),
        f"Enter selects the cell's object ({activity} #{wanted})",
    )
line.send_keys(Keys.ESCAPE)
order = page.js("return [...document.querySelectorAll('#p0 [tabindex]')].every((e) => e.tabIndex <= 0)")
point(order, "the order of Tab is that of the page")

# ---- tables ----
table = driver.find_element(By.CSS_SELECTOR, "#p0-objects ~ .dt-container table, #p0-objects ~ .table table")
ROWS = "return [...arguments[0].tBodies[0].rows].map((row) => Number(row.cells[4].dataset.order))"
sums = page.js(ROWS, table)
point(
    sums == sorted(sums, reverse=True) and len(sums) > 3,
    "objects stand by what was waited for them",
)
heading = table.find_element(By.XPATH, ".//th[.//text()='calls']")
heading.click()
CALLS = "return [...arguments[0].tBodies[0].rows].map((row) => Number(row.cells[2].dataset.order))"
said = page.until("return arguments[0].getAttribute('aria-sort') === 'descending'", heading)
calls = page.js(CALLS, table)
point(said and calls == sorted(calls, reverse=True), f"a click on a heading sorts by it, and it says so: {calls}")
field = table.find_element(By.XPATH, "ancestor::div[contains(@class, 'dt-container')]//input")
field.send_keys("barrier")
point(
    page.until("return arguments[0].tBodies[0].rows.length === 1", table) and "barrier" in table.text,
    "the filter leaves rows with the word",
)
field.clear()

# ---- pictures ----
drawn_figures = page.js(
    "return [...document.querySelectorAll('#p0 [data-figure]')].map((e) => [e.dataset.figure, e.data?.length ?? 0])"
)
names = {name for name, n in drawn_figures if n > 0}
point(
    names == {"path", "delays", "waits", "flames", "threads"},
    f"pictures: {', '.join(sorted(names))}",
)
point(page.fits(), "each fills its place")
page.wide(900, 900)
point(page.fits(), "and does in a narrow window, which needs no scrolling sideways")
picture("narrow")
page.narrow(400)
CUT_LEGENDS = """
return [...document.querySelectorAll('#p0 .legend .scrollbar')].filter((e) => e.getBoundingClientRect().height > 0).length;
"""
CUT_CAPTIONS = """
const right = document.documentElement.clientWidth;
return [...document.querySelectorAll('#p0 caption span')].filter((e) => e.getBoundingClientRect().right > right).length;
"""
LEGENDS = "return document.querySelectorAll('#p0 .legend').length"
point(page.until(f"{CUT_LEGENDS.strip()[:-1]} === 0") and page.js(LEGENDS) > 2, "400 pixels: legends are whole")
point(page.until(f"{CUT_CAPTIONS.strip()[:-1]} === 0"), "400 pixels: and so are captions")
point(page.fits(), "400 pixels: nothing sticks out, no picture is cut off")
violations = page.violations()
for violation in violations:
    print(f"# {violation}")
point(violations == [], "400 pixels: axe finds nothing")
picture("telephone")
page.wide()
node = driver.find_elements(
    By.CSS_SELECTOR,
    "#p0 [data-figure='waits'] .node-capture, #p0 [data-figure='waits'] .node-rect",
)
page.js("arguments[0].scrollIntoView({block: 'center'})", node[0])
picture("waits")

# ---- the second process ----
driver.find_element(By.CSS_SELECTOR, "[data-show='p1']").click()
point(
    page.until("return document.querySelector('#p1').dataset.ready === 'yes'"),
    "the second process has a page",
)
point(page.js("return document.querySelector('#p0').hidden"), "instead of the first one")
point(
    page.js("return window.evil === undefined"),
    "a command line is text, whatever is in it",
)
picture("second")
point(page.complaints() == [], "the console still has nothing to say")
page.close()
done()
