// How the curve looks: mean, the band of f and the wider one of new observations, terms, paths, points.

import { type Box, Frame, drawBand, drawLine, extent } from "./axes";
import { type Theme, classColour, css, marker } from "./palette";
import type { Pen } from "./pen";
import type { Scene } from "./plane_draw";
import { unpack } from "./wire";

const TERM_DASHES = [[6, 3], [2, 2], [8, 2, 2, 2], [1, 3]];

export function curveBox(scene: Scene): Box {
  const { view, data } = scene;
  if (!view?.x) return scene.box;
  const x = unpack(view.x);
  const mean = unpack(view.mean);
  const band = view.band ? unpack(view.band) : null;
  const up = band ? mean.map((m, i) => m + band[i]) : mean;
  const down = band ? mean.map((m, i) => m - band[i]) : mean;
  const y = data.task === "numbers" ? data.y : data.y.map((v) => 2 * v - 1);
  const [low, high] = extent(up, down, y);
  const room = 0.06 * (high - low);
  return [x[0], x[x.length - 1], low - room, high + room];
}

export function drawCurve(pen: Pen, scene: Scene, theme: Theme): Frame {
  const { view, data } = scene;
  const frame = Frame.on(pen, scene.box);
  const names: [string, string] = view?.names ?? [data.columns[0] ?? "x", data.target];
  frame.draw(pen, theme, data.task === "numbers" ? names : [names[0], "f"], true);
  if (view?.x) drawModel(pen, frame, view, theme);
  const standing: number[] = view?.standing ?? [];
  const weights = unpack(view?.weights);
  const most = Math.max(...weights, 1e-12);
  frame.clip(pen, () => {
    const r = data.y.length > 150 ? 2.6 : 4;
    for (const line of scene.lines) {
      if (scene.from) pen.line([frame.x(scene.from[0]), frame.y(scene.from[1]), px(line.row), py(line.row)], { stroke: theme.ink, width: 1.2, alpha: 0.35, dash: line.value < 0 ? [4, 3] : [] });
    }
    for (let i = 0; i < data.y.length; i++) {
      if (standing[i]) pen.circle(px(i), py(i), r + 2 + 4 * Math.sqrt((weights[i] ?? 0) / most), { stroke: theme.ink, width: standing[i] === 2 ? 2.2 : 1, alpha: 0.75 });
      const fill = data.task === "numbers" ? theme.ink : css(classColour(data.y[i], theme));
      marker(pen, data.task === "numbers" ? 0 : data.y[i], px(i), py(i), r, fill, theme.paper, 1);
      if (scene.selected.has(i)) pen.circle(px(i), py(i), r + 5, { stroke: theme.accent, width: 2, dash: [3, 2] });
      if (i === scene.hover || i === scene.chosen) pen.circle(px(i), py(i), r + 4.5, { stroke: theme.accent, width: 2.4 });
    }
    if (scene.cursor) {
      const [x, y] = [frame.x(scene.cursor[0]), frame.y(scene.cursor[1])];
      pen.line([x - 10, y, x + 10, y], { stroke: theme.accent, width: 2 });
      pen.line([x, y - 10, x, y + 10], { stroke: theme.accent, width: 2 });
    }
  });
  return frame;

  function px(i: number): number { return frame.x(scene.places[2 * i]); }
  function py(i: number): number { return frame.y(scene.places[2 * i + 1]); }
}

function drawLegend(pen: Pen, frame: Frame, named: [string, string, number[]][], theme: Theme): void {
  named.forEach(([words, stroke, dash], k) => {
    const y = frame.top + 14 + 16 * k;
    pen.line([frame.left + 10, y, frame.left + 32, y], { stroke, width: 2, dash });
    pen.text(words, frame.left + 38, y, { fill: theme.ink, size: 11 });
  });
}

function drawModel(pen: Pen, frame: Frame, view: any, theme: Theme): void {
  const x = unpack(view.x);
  const mean = unpack(view.mean);
  const blue = css(classColour(0, theme));
  if (view.band) {
    drawBand(pen, frame, x, mean, unpack(view.noisy), blue, 0.1);
    drawBand(pen, frame, x, mean, unpack(view.band), blue, 0.2);
  } else if (view.tube) {
    drawBand(pen, frame, x, mean, new Float32Array(x.length).fill(view.tube), blue, 0.14);
  }
  if (view.paths) {
    const paths = unpack(view.paths);
    const at = unpack(view.pathPlaces);
    const [count, length] = view.paths.shape;
    for (let k = 0; k < count; k++) drawLine(pen, frame, at, paths.subarray(k * length, (k + 1) * length), css(classColour(3, theme)), 1.1, 0.75);
  }
  const named: [string, string, number[]][] = [["mean", blue, []]];
  (view.terms ?? []).forEach((term: any, k: number) => {
    const [colour, dash] = [css(classColour(1 + (k % 5), theme)), TERM_DASHES[k % 4]];
    drawLine(pen, frame, x, unpack(term.mean), colour, 1.6, 0.95, dash);
    named.push([term.name.length > 34 ? `${term.name.slice(0, 33)}…` : term.name, colour, dash]);
  });
  if (view.paths) named.push(["drawn from the posterior", css(classColour(3, theme)), []]);
  if (view.band) drawLegend(pen, frame, named, theme);
  // one line, or one for each class
  for (let k = 0; k * x.length < mean.length; k++) {
    drawLine(pen, frame, x, mean.subarray(k * x.length, (k + 1) * x.length), mean.length > x.length ? css(classColour(k, theme)) : blue, 2.4);
  }
  if (view.isClasses) drawLine(pen, frame, [frame.box[0], frame.box[1]], [0, 0], theme.soft, 1, 1, [4, 3]);
}
