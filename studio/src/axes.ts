// A frame with ticks, and contours of a function on a grid by marching squares.

import type { Theme } from "./palette";
import type { Pen } from "./pen";
import { short } from "./wire";

export type Box = [number, number, number, number];

export class Frame {
  constructor(readonly box: Box, readonly left: number, readonly top: number, readonly w: number, readonly h: number) {}

  static on(pen: Pen, box: Box, pad = { l: 44, r: 10, t: 10, b: 34 }): Frame {
    return new Frame(box, pad.l, pad.t, pen.width - pad.l - pad.r, pen.height - pad.t - pad.b);
  }

  x(v: number): number { return this.left + ((v - this.box[0]) / (this.box[1] - this.box[0])) * this.w; }
  y(v: number): number { return this.top + this.h - ((v - this.box[2]) / (this.box[3] - this.box[2])) * this.h; }
  back(px: number, py: number): [number, number] {
    return [
      this.box[0] + ((px - this.left) / this.w) * (this.box[1] - this.box[0]),
      this.box[2] + ((this.top + this.h - py) / this.h) * (this.box[3] - this.box[2]),
    ];
  }
  holds(px: number, py: number): boolean {
    return px >= this.left && px <= this.left + this.w && py >= this.top && py <= this.top + this.h;
  }

  draw(pen: Pen, theme: Theme, names: [string, string] | null, grid = false): void {
    const { left, top, w, h } = this;
    const size = 10.5;
    for (const v of ticks(this.box[0], this.box[1], Math.max(2, Math.floor(w / 70)))) {
      const x = this.x(v);
      if (grid) pen.line([x, top, x, top + h], { stroke: theme.faint, width: 1 });
      pen.line([x, top + h, x, top + h + 4], { stroke: theme.soft });
      pen.text(short(v, 4), x, top + h + 12, { fill: theme.soft, size, align: "center" });
    }
    for (const v of ticks(this.box[2], this.box[3], Math.max(2, Math.floor(h / 50)))) {
      const y = this.y(v);
      if (grid) pen.line([left, y, left + w, y], { stroke: theme.faint, width: 1 });
      pen.line([left - 4, y, left, y], { stroke: theme.soft });
      pen.text(short(v, 4), left - 7, y, { fill: theme.soft, size, align: "right" });
    }
    pen.line([left, top, left + w, top, left + w, top + h, left, top + h], { stroke: theme.soft, width: 1, alpha: 0.6 }, true);
    if (names) {
      pen.text(names[0], left + w / 2, top + h + 26, { fill: theme.soft, size: 11.5, align: "center" });
      if (names[1]) pen.text(names[1], 9, top + h / 2, { fill: theme.soft, size: 11.5, align: "center", turn: true });
    }
  }

  clip(pen: Pen, inside: () => void): void { pen.clip(this.left, this.top, this.w, this.h, inside); }
}

export function ticks(low: number, high: number, most: number): number[] {
  const raw = (high - low) / Math.max(most, 1);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw) ?? raw;
  const out: number[] = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) out.push(Number((i * step).toPrecision(12)));
  return out;
}

// Segments x1, y1, x2, y2 in places of the grid (column, row), where the function crosses the level.
export function contour(f: ArrayLike<number>, columns: number, rows: number, level: number): number[] {
  const out: number[] = [];
  for (let r = 0; r + 1 < rows; r++) {
    for (let c = 0; c + 1 < columns; c++) {
      const i = r * columns + c;
      // most cells are not crossed
      const low = f[i] < level;
      if (low === f[i + 1] < level && low === f[i + columns] < level && low === f[i + columns + 1] < level) continue;
      const v = [f[i] - level, f[i + 1] - level, f[i + columns + 1] - level, f[i + columns] - level];
      const at: number[] = [];
      const cut = (a: number, b: number, x1: number, y1: number, x2: number, y2: number) => {
        if ((v[a] < 0) !== (v[b] < 0)) {
          const t = v[a] / (v[a] - v[b]);
          at.push(x1 + t * (x2 - x1), y1 + t * (y2 - y1));
        }
      };
      cut(0, 1, c, r, c + 1, r);
      cut(1, 2, c + 1, r, c + 1, r + 1);
      cut(2, 3, c + 1, r + 1, c, r + 1);
      cut(3, 0, c, r + 1, c, r);
      for (let k = 0; k + 3 < at.length; k += 4) out.push(at[k], at[k + 1], at[k + 2], at[k + 3]);
    }
  }
  return out;
}

export function drawContour(pen: Pen, frame: Frame, f: ArrayLike<number>, columns: number, rows: number, level: number, stroke: string, width: number, dash: number[] = []): void {
  const px = (c: number) => frame.left + (c / (columns - 1)) * frame.w;
  const py = (r: number) => frame.top + frame.h - (r / (rows - 1)) * frame.h;
  for (const chain of chained(contour(f, columns, rows, level))) {
    pen.line(chain.map((v, k) => (k % 2 ? py(v) : px(v))), { stroke, width, dash });
  }
}

// Segments joined to long lines where their ends meet, so that dashes are even.
function chained(segments: number[]): number[][] {
  const key = (x: number, y: number) => Math.round(x * 1e4) * 1e7 + Math.round(y * 1e4);
  const ends = new Map<number, number[]>();
  for (let k = 0; k < segments.length; k += 4) {
    for (const e of [0, 2]) {
      const name = key(segments[k + e], segments[k + e + 1]);
      const there = ends.get(name);
      if (there) there.push(k);
      else ends.set(name, [k]);
    }
  }
  const used = new Set<number>();
  const grow = (chain: number[]): void => {
    for (;;) {
      const [x, y] = chain.slice(-2);
      const next = ends.get(key(x, y))?.find((k) => !used.has(k));
      if (next === undefined) return;
      used.add(next);
      const atStart = key(segments[next], segments[next + 1]) === key(x, y);
      chain.push(segments[next + (atStart ? 2 : 0)], segments[next + (atStart ? 3 : 1)]);
    }
  };
  const out: number[][] = [];
  for (let k = 0; k < segments.length; k += 4) {
    if (used.has(k)) continue;
    used.add(k);
    const chain = segments.slice(k, k + 4);
    grow(chain);
    const back = [chain[0], chain[1]];
    grow(back);
    const start: number[] = [];
    for (let i = back.length - 2; i >= 2; i -= 2) start.push(back[i], back[i + 1]);
    out.push([...start, ...chain]);
  }
  return out;
}

// Pixels of a grid, the bottom row last, each coloured by a function of its place.
export function pixels(columns: number, rows: number, colour: (i: number) => [number, number, number], alpha = 255): ImageData {
  const image = new ImageData(columns, rows);
  for (let r = 0; r < rows; r++) {
    for (let c = 0; c < columns; c++) {
      const [red, green, blue] = colour(r * columns + c);
      const o = 4 * ((rows - 1 - r) * columns + c);
      image.data[o] = red;
      image.data[o + 1] = green;
      image.data[o + 2] = blue;
      image.data[o + 3] = alpha;
    }
  }
  return image;
}

// The image of grid points at cell centres, stretched so that the outer points lie on the frame.
export function drawGrid(pen: Pen, frame: Frame, image: ImageData, smooth = true): void {
  const dx = frame.w / (image.width - 1), dy = frame.h / (image.height - 1);
  frame.clip(pen, () => pen.image(image, frame.left - dx / 2, frame.top - dy / 2, frame.w + dx, frame.h + dy, smooth));
}

// Gives a canvas the shape of what it shows, so that circles stay round.
export function shaped(canvas: HTMLCanvasElement, box: Box | undefined): void {
  const ratio = box ? (box[1] - box[0]) / (box[3] - box[2]) : 0;
  const fair = ratio > 0.4 && ratio < 3;
  canvas.style.height = fair ? "auto" : "";
  canvas.style.aspectRatio = fair ? String(ratio) : "";
}

// Lines of a function along x.
export function drawLine(pen: Pen, frame: Frame, x: ArrayLike<number>, y: ArrayLike<number>, stroke: string, width = 1.5, alpha = 1, dash: number[] = []): void {
  const path = new Array<number>(2 * x.length);
  for (let i = 0; i < x.length; i++) {
    path[2 * i] = frame.x(x[i]);
    path[2 * i + 1] = frame.y(y[i]);
  }
  frame.clip(pen, () => pen.line(path, { stroke, width, alpha, dash }));
}

export function drawBand(pen: Pen, frame: Frame, x: ArrayLike<number>, y: ArrayLike<number>, half: ArrayLike<number>, fill: string, alpha: number): void {
  const path: number[] = [];
  for (let i = 0; i < x.length; i++) path.push(frame.x(x[i]), frame.y(y[i] + half[i]));
  for (let i = x.length - 1; i >= 0; i--) path.push(frame.x(x[i]), frame.y(y[i] - half[i]));
  frame.clip(pen, () => pen.line(path, { fill, alpha }, true));
}

export function extent(...lists: ArrayLike<number>[]): [number, number] {
  let low = Infinity, high = -Infinity;
  for (const list of lists) for (let i = 0; i < list.length; i++) {
    const v = list[i];
    if (Number.isFinite(v)) { if (v < low) low = v; if (v > high) high = v; }
  }
  if (!(low < high)) { const m = Number.isFinite(low) ? low : 0; return [m - 1, m + 1]; }
  return [low, high];
}
