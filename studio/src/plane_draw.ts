// How the plane looks: the field, its contours, and the points with what they are to the machine.

import { type Box, Frame, drawContour, drawGrid, pixels } from "./axes";
import { type Rgb, type Theme, classColour, css, diverging, hex, mix, outline, ring, viridis } from "./palette";
import type { Pen } from "./pen";
import { type Data, unpack } from "./wire";

export interface Scene {
  view: any;
  data: Data;
  places: ArrayLike<number>;
  box: Box;
  hover: number | null;
  chosen: number | null;
  selected: Set<number>;
  cursor: [number, number] | null;
  lines: { row: number; value: number }[];
  from: [number, number] | null;
}

function reach(f: Float32Array): number {
  const sizes = Float32Array.from(f, Math.abs).sort();
  return sizes[Math.floor(0.98 * (sizes.length - 1))] || 1;
}

export function sideColours(sides: number[] | null, theme: Theme): [Rgb, Rgb] {
  if (!sides || sides[0] < 0) return [hex(theme.dark ? "#8a8f98" : "#9aa0a8"), classColour(2, theme)];
  return [classColour(sides[0], theme), classColour(sides[1], theme)];
}

// The pixels of a field, kept as long as the answer they are of.
const kept = new WeakMap<object, { dark: boolean; image: ImageData; f: Float32Array }>();

function imageOf(field: object, f: () => Float32Array, theme: Theme, make: (f: Float32Array) => ImageData): { image: ImageData; f: Float32Array } {
  const known = kept.get(field);
  if (known && known.dark === theme.dark) return known;
  const values = known?.f ?? f();
  const made = { dark: theme.dark, image: make(values), f: values };
  kept.set(field, made);
  return made;
}

export function drawField(pen: Pen, frame: Frame, view: any, data: Data, theme: Theme): void {
  if (!view?.field) return;
  const [rows, columns] = view.field.shape;
  const paper = hex(theme.paper);
  const drawn = (colour: (f: Float32Array) => (i: number) => Rgb): Float32Array => {
    const { image, f } = imageOf(view.field, () => unpack(view.field), theme, (values) => pixels(columns, rows, colour(values)));
    drawGrid(pen, frame, image);
    return f;
  };
  if (view.winner) {
    const won = unpack(view.winner);
    drawn((f) => {
      const most = reach(f);
      return (i) => mix(paper, classColour(won[i], theme), 0.14 + 0.36 * Math.min(f[i] / most, 1));
    });
    for (const place of new Set(won)) {
      const mine = Float32Array.from(won, (w) => (w === place ? 1 : 0));
      drawContour(pen, frame, mine, columns, rows, 0.5, theme.ink, 1.2);
    }
    return;
  }
  if (data.task === "numbers") {
    drawn((f) => {
      const [low, high] = range(f);
      return (i) => mix(paper, viridis((f[i] - low) / (high - low || 1)), 0.75);
    });
    return;
  }
  const [low, high] = sideColours(view.sides, theme);
  const f = drawn((values) => {
    const most = reach(values);
    return (i) => {
      const t = values[i] / most;
      // bands, so that the height can be read
      const step = Math.sign(t) * (Math.ceil(Math.abs(t) * 6 - 1e-9) / 6);
      return diverging(0.55 * (0.65 * t + 0.35 * step), low, high, paper);
    };
  });
  drawContour(pen, frame, f, columns, rows, 0, theme.ink, 2);
  if (view.margin) {
    drawContour(pen, frame, f, columns, rows, 1, theme.ink, 1.1, [4, 4]);
    drawContour(pen, frame, f, columns, rows, -1, theme.ink, 1.1, [4, 4]);
  }
}

export function drawPoints(pen: Pen, frame: Frame, scene: Scene, theme: Theme): void {
  const { view, data, places } = scene;
  const weights = unpack(view?.weights);
  const standing: number[] = view?.standing ?? [];
  const misfits = new Set<number>(view?.misfits ?? []);
  const most = Math.max(...weights, 1e-12);
  const numbers = data.task === "numbers";
  const [low, high] = numbers ? range(data.y) : [0, 1];
  const r = data.y.length > 300 ? 3.2 : 4.2;
  for (const line of scene.lines) drawTie(pen, frame, scene, line, theme);
  const rings: number[][][] = [[], [], []];
  const signs = new Map<string, number[][]>();
  const crosses: number[][] = [];
  for (let i = 0; i < data.y.length; i++) {
    const x = frame.x(places[2 * i]), y = frame.y(places[2 * i + 1]);
    const colour = css(numbers ? viridis(Math.round((32 * (data.y[i] - low)) / (high - low || 1)) / 32) : classColour(data.y[i], theme));
    if (standing[i]) rings[standing[i]].push(ring(x, y, r + 2.2 + 5.5 * Math.sqrt((weights[i] ?? 0) / most)));
    if (!signs.has(colour)) signs.set(colour, []);
    signs.get(colour)!.push(outline(numbers ? 0 : data.y[i], x, y, r));
    if (misfits.has(i)) crosses.push([x - 2.6, y - 2.6, x + 2.6, y + 2.6], [x - 2.6, y + 2.6, x + 2.6, y - 2.6]);
  }
  pen.outlines(rings[1], { stroke: theme.ink, width: 1, alpha: 0.8 });
  pen.outlines(rings[2], { stroke: theme.ink, width: 2.2, alpha: 0.8 });
  for (const [fill, paths] of signs) {
    // one by one each has its own edge; hundreds are drawn together, edges first
    const batches = data.y.length > 200 ? [paths] : paths.map((path) => [path]);
    for (const batch of batches) {
      pen.outlines(batch, { stroke: theme.paper, width: 1.8 });
      pen.outlines(batch, { fill });
    }
  }
  pen.outlines(crosses, { stroke: theme.paper, width: 1.6 });
  for (const i of new Set([...scene.selected, scene.hover, scene.chosen])) {
    if (i === null || i >= data.y.length) continue;
    const x = frame.x(places[2 * i]), y = frame.y(places[2 * i + 1]);
    if (scene.selected.has(i)) pen.circle(x, y, r + 5, { stroke: theme.accent, width: 2, dash: [3, 2] });
    if (i === scene.hover || i === scene.chosen) pen.circle(x, y, r + 4.5, { stroke: theme.accent, width: i === scene.hover ? 3 : 2 });
  }
  if (scene.cursor) {
    const [x, y] = [frame.x(scene.cursor[0]), frame.y(scene.cursor[1])];
    pen.line([x - 10, y, x + 10, y], { stroke: theme.accent, width: 2 });
    pen.line([x, y - 10, x, y + 10], { stroke: theme.accent, width: 2 });
  }
}

// A line from the chosen place to a row that speaks for or against it.
function drawTie(pen: Pen, frame: Frame, scene: Scene, line: { row: number; value: number }, theme: Theme): void {
  if (!scene.from) return;
  const size = Math.max(...scene.lines.map((l) => Math.abs(l.value)), 1e-12);
  pen.line(
    [frame.x(scene.from[0]), frame.y(scene.from[1]), frame.x(scene.places[2 * line.row]), frame.y(scene.places[2 * line.row + 1])],
    { stroke: theme.ink, width: 0.6 + (3 * Math.abs(line.value)) / size, alpha: 0.45, dash: line.value < 0 ? [4, 3] : [] },
  );
}

export function range(values: ArrayLike<number>): [number, number] {
  let low = Infinity, high = -Infinity;
  for (let i = 0; i < values.length; i++) { low = Math.min(low, values[i]); high = Math.max(high, values[i]); }
  return [low, high];
}

export function drawPlane(pen: Pen, scene: Scene, theme: Theme): Frame {
  const frame = Frame.on(pen, scene.box);
  drawField(pen, frame, scene.view, scene.data, theme);
  frame.draw(pen, theme, scene.view?.names ?? [scene.data.columns[0] ?? "", scene.data.columns[1] ?? ""]);
  frame.clip(pen, () => drawPoints(pen, frame, scene, theme));
  return frame;
}
