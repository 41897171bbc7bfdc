"""Plots for the documentation, as SVG: lines over a quantity, or bars side by side."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Plot:
    """A picture with one or several series.

    series: a name and its (x, y) points. Where x is text, bars are drawn; where it is a number, lines.
    log: the axes on a logarithmic scale: "", "x", "y" or "xy".
    """

    name: str
    title: str
    x: str
    y: str
    series: Mapping[str, Sequence[tuple[float, float]] | Sequence[tuple[str, float]]]
    log: str = ""

    def save(self, folder: Path) -> Path:
        """Draws it to `folder/<name>.svg`."""
        import matplotlib as mpl  # noqa: PLC0415 - half a second, and only whoever draws needs it

        mpl.use("Agg")
        mpl.rcParams["svg.hashsalt"] = "threadmill"  # the same figures give the same file
        from matplotlib import pyplot  # noqa: PLC0415

        figure, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
        wide = 0.8 / len(self.series)
        for at, (label, points) in enumerate(self.series.items()):
            xs, ys = [x for x, _ in points], [y for _, y in points]
            if xs and isinstance(xs[0], str):
                places = [place + (at - (len(self.series) - 1) / 2) * wide for place in range(len(xs))]
                axes.bar(places, ys, wide, label=label)
                axes.set_xticks(range(len(xs)), [str(x) for x in xs])
            else:
                axes.plot(xs, ys, marker="o" if len(xs) < 30 else None, label=label)
        if "x" in self.log:
            axes.set_xscale("log")
        if "y" in self.log:
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
        axes.set(title=self.title, xlabel=self.x, ylabel=self.y)
        axes.grid(alpha=0.3)
        if len(self.series) > 1:
            axes.legend()
        path = folder / f"{self.name}.svg"
        figure.savefig(path, metadata={"Date": None})
        pyplot.close(figure)
        return path
