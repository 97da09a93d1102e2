# SPDX-License-Identifier: LGPL-2.1-or-later
"""Headless Chromium for tests of pages, driven by Selenium. A test that has none is skipped with a word."""

import importlib.util
import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any

NEEDED = ("chromium", "chromedriver")


def missing() -> str:
    """What keeps a browser from being used here; "" if nothing does."""
    absent = [name for name in NEEDED if shutil.which(name) is None]
    return f"no {' and no '.join(absent)}" if absent else ""


class Page:
    """A page in a window of its own."""

    def __init__(self, path: str, width: int = 1400, height: int = 1000) -> None:
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service

        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        for word in (
            "headless=new",
            "no-sandbox",
            "disable-gpu",
            "disable-dev-shm-usage",
            f"window-size={width},{height}",
        ):
            options.add_argument(f"--{word}")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        self.driver.set_script_timeout(120)
        self.driver.get(Path(path).resolve().as_uri())

    def close(self) -> None:
        """End the browser."""
        self.driver.quit()

    def js(self, script: str, *arguments: Any) -> Any:
        """The value of the script's `return`."""
        return self.driver.execute_script(script, *arguments)

    def until(self, script: str, *arguments: Any) -> bool:
        """Does the script's `return` become true within two minutes?"""
        end = time.monotonic() + 120
        while time.monotonic() < end:
            if self.js(script, *arguments):
                return True
            time.sleep(0.05)
        print(f"# not within two minutes: {script}")
        return False

    def complaints(self) -> list[str]:
        """What the browser's console has said since the last question."""
        return [f"{entry['level']}: {entry['message']}" for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """What has been asked for since the last question, by its address."""
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]

    def violations(self) -> list[str]:
        """What axe finds against WCAG 2.1 A and AA and its own best practices."""
        package = importlib.util.find_spec("axe_playwright_python")
        if package is None or not package.submodule_search_locations:
            raise ModuleNotFoundError("axe_playwright_python, for its axe.min.js")
        self.js((Path(package.submodule_search_locations[0]) / "axe.min.js").read_text(encoding="utf-8"))
        found = self.driver.execute_async_script(
            "const done = arguments[0]; axe.run({resultTypes: ['violations']}).then((r) => done(r.violations));"
        )
        return [f"{v['id']}: {v['nodes'][0]['html'][:120]} ({len(v['nodes'])} in all)" for v in found]


if __name__ == "__main__":
    sys.exit(missing() or 0)
