"""What does each term add to a model of the carbon dioxide in the air?
====================================================================

A sum of kernels is grown term by term: a trend; and a season; and ups and downs over years. Each model has
noise, learns its scales from the evidence, and leaves less unexplained than the one before. To the trend
alone the season is noise, as its band says. With a season but no medium term the trend has to follow the ups
and downs of some years itself: it is quick, and forgets that it rises. The whole sum tells them apart.
"""

import numpy as np
from gallery import save

from mercer import RBF, GaussianProcessRegressor, RationalQuadratic, White, ZeroMeanPeriodic
from mercer.applications.co2 import load_co2
from mercer.plot.style import COLOURS, GREY, new_figure, tidy

TREND = 2500.0 * RBF(50.0)
SEASON = 4.0 * RBF(100.0) * ZeroMeanPeriodic(1.0, 1.0).fix("period")
MEDIUM = 0.25 * RationalQuadratic(1.0, alpha=1.0)
GROWN = {
    "trend + noise": TREND + White(4.0),
    "trend + season + noise": TREND + SEASON + White(0.1),
    "trend + season + medium term + noise": TREND + SEASON + MEDIUM + White(0.01),
}


def main():
    series = load_co2()
    known, later = series.until(1980), series.after(1980).until(1990)
    ahead = np.arange(1958.25, 1991.0, 1 / 12)
    figure = new_figure(10.0, 7.6)
    panels = figure.subplots(3, 2, sharex=True, width_ratios=[1.6, 1.0])
    evidence, left, errors = [], [], []
    for (name, kernel), (line, rest), colour in zip(GROWN.items(), panels, COLOURS, strict=False):
        model = GaussianProcessRegressor(kernel, normalize_y="mean").fit(known.time[:, None], known.ppm)
        mean, std = model.predict(ahead[:, None], return_std=True, noise=True)
        off = known.ppm - model.predict(known.time[:, None])
        evidence.append(model.log_evidence_)
        left.append(float(off.std()))
        errors.append(float(np.sqrt(np.mean((model.predict(later.time[:, None]) - later.ppm) ** 2))))
        found = f"log evidence {evidence[-1]:.1f}, {left[-1]:.2f} ppm unexplained"
        print(f"{name}: {found}, {errors[-1]:.1f} ppm off in the ten years that followed")
        line.fill_between(ahead, mean - 1.96 * std, mean + 1.96 * std, color=colour, alpha=0.25, lw=0)
        line.plot(ahead, mean, color=colour, lw=1.2)
        line.scatter(known.time, known.ppm, s=2, color="#222222", zorder=3)
        line.scatter(later.time, later.ppm, s=2, color=GREY, zorder=3)
        line.axvline(1981, color=GREY, lw=0.8, ls=(0, (4, 3)))
        line.set_ylim(305, 375)
        rest.axhline(0, color="#BBBBBB", lw=0.8)
        rest.plot(known.time, off, color=colour, lw=0.7)
        rest.set_ylim(-5, 5)
        tidy(line, name, "", "CO₂, ppm")
        tidy(rest, f"unexplained: {left[-1]:.2f} ppm", "", "ppm")
    for last in panels[-1]:
        last.set_xlabel("year")
    assert evidence[0] < evidence[1] < evidence[2]
    assert left[0] > left[1] > left[2]
    assert errors[2] < errors[0] < errors[1]
    return figure


if __name__ == "__main__":
    save(main(), __file__)
