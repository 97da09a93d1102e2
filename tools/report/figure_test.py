#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The README's picture: the same every time, all bars and labels inside the frame, refused where a number is missing."""
import os
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True
import tap  # noqa: E402

try:
    import figure
    import performance_plot as plot
except ImportError:
    plot = None


def rows(ratio=2.0, spread=1.5):
    return [{"kind": k, "threads": n, "engine": e, "ratio": ratio, "ratio_min": ratio / spread, "ratio_max": ratio * spread}
            for k in plot.KINDS for n in plot.THREADS for e in ["native"] + [name for name, _, _ in plot.ENGINES]]


@unittest.skipIf(plot is None, "no matplotlib")
class Picture(unittest.TestCase):
    def draw(self, given):
        """The SVG and matplotlib's figure."""
        kept = []
        close, figure.plt.close = figure.plt.close, kept.append
        try:
            with tempfile.TemporaryDirectory() as folder:
                path = plot.draw(given, os.path.join(folder, "new", "picture.svg"), "a note")
                with open(path, encoding="utf-8") as file:
                    return file.read(), next(p for p in kept if hasattr(p, "axes"))
        finally:
            figure.plt.close = close
            for picture in kept:
                close(picture)

    def test_same_every_time(self):
        self.assertEqual(self.draw(rows())[0], self.draw(rows())[0])

    def test_a_missing_number_is_refused(self):
        for i in (1, len(plot.ENGINES)):
            given = rows()
            del given[i]
            with self.assertRaisesRegex(ValueError, "no ratio of barrier, 2 threads, direct"):
                self.draw(given)
        given = rows()
        given[1]["ratio"] = None
        with self.assertRaises(ValueError):
            self.draw(given)

    def test_nothing_touches_the_frame(self):
        for ratio in (0.1, 0.9, 3, 150):
            _, picture = self.draw(rows(ratio))
            for axis in picture.axes:
                frame = axis.get_window_extent()
                for bar in axis.patches:
                    box = bar.get_window_extent()
                    self.assertTrue(frame.x0 + 3 < box.x0 and box.x1 < frame.x1 - 3, (ratio, box))
                    self.assertTrue(frame.y0 + 3 < box.y0 and box.y1 < frame.y1 - 3, (ratio, box))
                for text in axis.texts:
                    self.assertLess(text.get_window_extent().y1, frame.y1, ratio)

    def test_labels_do_not_overlap(self):
        _, picture = self.draw(rows(0.9))
        for axis in picture.axes:
            boxes = sorted((text.get_window_extent() for text in axis.texts), key=lambda box: box.x0)
            for left, right in zip(boxes, boxes[1:]):
                self.assertLess(left.x1, right.x0)

    def test_own_background(self):
        self.assertIn("fill: #ffffff", self.draw(rows())[0])


if __name__ == "__main__":
    sys.exit(tap.main(sys.modules[__name__]))
