# SPDX-License-Identifier: LGPL-2.1-or-later
"""A page of `subutai report --html` in narrow windows, with whatever names and numbers: nothing sticks out.

usage: report_narrow.py PAGE [PICTURES]        output: TAP. PICTURES: a folder for screenshots, to be looked at.
"""

import sys
from pathlib import Path

from browser import Page
from points import done, point

PAGE, *PICTURES = sys.argv[1:]
READY = "return document.querySelector('article:not([hidden])').dataset.ready === 'yes'"
CUT_CAPTIONS = """
const right = document.documentElement.clientWidth;
return [...document.querySelectorAll('article:not([hidden]) caption span')].filter(
  (e) => e.getBoundingClientRect().right > right).length;
"""
SELECT = """
const chooser = document.querySelector('article:not([hidden]) .chooser');
chooser.value = chooser.options[arguments[0]].value;
chooser.dispatchEvent(new Event('change', {bubbles: true}));
return chooser.options.length;
"""
page = Page(PAGE)
point(page.until(READY), "the page is drawn")
shows = page.js("return [...document.querySelectorAll('[data-show]')].map((e) => e.dataset.show)") or ["p0"]
BUTTONS = "return [...document.querySelectorAll('[data-show]')].map((e) => [e.textContent, e.title])"
point(
    all(len(text) < 110 and text.endswith(whole[-30:]) and whole[:30] in text for text, whole in page.js(BUTTONS)),
    "the list of processes has the two ends of command lines, however long they are",
)
for width in (400, 320):
    page.narrow(width)
    for show in shows:
        about = f"{width} pixels, {show}"
        page.js("document.querySelector(`[data-show='${arguments[0]}']`)?.click()", show)
        point(page.until(READY) and page.fits(), f"{about}: nothing sticks out, no picture is cut off")
        point(page.js(CUT_CAPTIONS) == 0, f"{about}: captions are whole")
        if page.js("return document.querySelector('article:not([hidden]) .chooser').options.length") > 1:
            page.js(SELECT, 1)
            point(page.fits(), f"{about}: nor when an object is selected")
            page.js(SELECT, 0)
        if PICTURES:
            page.driver.save_screenshot(str(Path(PICTURES[0]) / f"{width}-{show}.png"))
page.wide()
for show in shows:
    page.js("document.querySelector(`[data-show='${arguments[0]}']`)?.click()", show)
    point(page.fits(), f"wide again, {show}: pictures fill their places")
point(page.complaints() == [], "the console has nothing to say")
page.close()
done()
