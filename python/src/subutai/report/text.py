# SPDX-License-Identifier: LGPL-2.1-or-later
"""Figures in the units that people read."""

from typing import Any


def duration(ns: float | None) -> str:
    """Three significant digits: "1.23 ms"."""
    if ns is None:
        return ""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if abs(ns) >= size:
            return f"{ns / size:.3g} {unit}" if abs(ns) < 999.5 * size else f"{ns / size:,.0f} {unit}"
    return f"{ns:.0f} ns"


def share(part: float | None) -> str:
    """Percent; what is not nothing is not shown as nothing."""
    if part is None:
        return ""
    if 0 < part < 0.001:
        return "<0.1 %"
    return f"{part * 100:.1f} %"


def count(n: float | None) -> str:
    """With a comma between thousands."""
    return "" if n is None else f"{n:,.0f}"


def figure(name: str, value: float | None, unit: str) -> str:
    """A figure of an advice: "median release: 55.6 ms"."""
    if value is None:
        return ""
    if unit == "ns":
        written = duration(value)
    elif unit == "share":
        written = share(value)
    else:
        written = count(value) if unit == "count" else f"{value:.3g}"
    return f"{name.removesuffix('_ns').replace('_', ' ')}: {written}"


def plain(text: str) -> str:
    """Text in which plotly finds no markup."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def shortened(text: str, length: int = 44) -> str:
    """With the middle left out: names differ at both ends."""
    if len(text) <= length:
        return text
    return f"{text[: length // 2]}…{text[-(length - length // 2 - 1) :]}"


def object_name(thing: dict[str, Any]) -> str:
    """An object's name with its number, which alone is its own."""
    number = f"#{thing['id']}"
    name = thing.get("name") or thing["type"]
    return name if name.startswith(f"{thing['type']}{number} ") else f"{name} {number}"
