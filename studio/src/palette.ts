// Colours that stay apart for colour-blind eyes (after Okabe and Ito), and a shape for each class besides.

import type { Pen } from "./pen";

export type Rgb = [number, number, number];

export const COLOURS: Rgb[] = [
  [0, 114, 178], [213, 94, 0], [0, 158, 115], [204, 121, 167], [140, 110, 0],
  [86, 180, 233], [110, 70, 160], [120, 120, 120], [60, 60, 60],
];
const DARK: Rgb[] = [
  [94, 176, 240], [255, 150, 70], [60, 205, 160], [236, 158, 202], [226, 196, 64],
  [140, 210, 255], [186, 150, 240], [180, 180, 180], [225, 225, 225],
];
export const SHAPES = ["circle", "square", "triangle", "diamond", "down", "plus", "cross", "star", "hexagon"];

export interface Theme { dark: boolean; ink: string; soft: string; faint: string; paper: string; accent: string }

export const LIGHT_THEME: Theme = {
  dark: false, ink: "#1b1f24", soft: "#5a6470", faint: "#dfe3e8", paper: "#ffffff", accent: "#0b6bcb",
};
export const DARK_THEME: Theme = {
  dark: true, ink: "#e8eaed", soft: "#a2abb6", faint: "#343a42", paper: "#16191d", accent: "#6cb2ff",
};

export function classColour(place: number, theme: Theme): Rgb {
  return (theme.dark ? DARK : COLOURS)[((place % 9) + 9) % 9];
}

export function css([r, g, b]: Rgb, alpha = 1): string {
  return alpha < 1 ? `rgba(${r},${g},${b},${alpha})` : `rgb(${r},${g},${b})`;
}

export function mix(a: Rgb, b: Rgb, t: number): Rgb {
  return [a[0] + (b[0] - a[0]) * t, a[1] + (b[1] - a[1]) * t, a[2] + (b[2] - a[2]) * t];
}

export function hex(text: string): Rgb {
  const n = parseInt(text.slice(1), 16);
  return [(n >> 16) & 255, (n >> 8) & 255, n & 255];
}

// Viridis in nine steps: even in lightness, so that it reads without colour too.
const VIRIDIS: Rgb[] = [
  [68, 1, 84], [71, 44, 122], [59, 81, 139], [44, 113, 142], [33, 144, 141],
  [39, 173, 129], [92, 200, 99], [170, 220, 50], [253, 231, 37],
];

export function viridis(t: number): Rgb {
  const at = Math.min(Math.max(t, 0), 1) * 8;
  const i = Math.min(Math.floor(at), 7);
  return mix(VIRIDIS[i], VIRIDIS[i + 1], at - i);
}

// From one colour through the paper to another.
export function diverging(t: number, low: Rgb, high: Rgb, paper: Rgb): Rgb {
  const s = Math.min(Math.max(t, -1), 1);
  return s < 0 ? mix(paper, low, -s) : mix(paper, high, s);
}

function corners(shape: string): number[][] {
  const turn = (count: number, start: number, r: (i: number) => number) =>
    Array.from({ length: count }, (_, i) => [r(i) * Math.cos(start + (2 * Math.PI * i) / count), r(i) * Math.sin(start + (2 * Math.PI * i) / count)]);
  const up = -Math.PI / 2;
  switch (shape) {
    case "square": return turn(4, Math.PI / 4, () => 1.2);
    case "triangle": return turn(3, up, () => 1.3);
    case "down": return turn(3, -up, () => 1.3);
    case "diamond": return turn(4, up, () => 1.25);
    case "star": return turn(10, up, (i) => (i % 2 ? 0.6 : 1.4));
    case "hexagon": return turn(6, up, () => 1.1);
    case "plus": case "cross": {
      const a = 0.4, b = 1.2;
      const cross = [[-a, -b], [a, -b], [a, -a], [b, -a], [b, a], [a, a], [a, b], [-a, b], [-a, a], [-b, a], [-b, -a], [-a, -a]];
      if (shape === "plus") return cross;
      const c = Math.SQRT1_2;
      return cross.map(([x, y]) => [c * (x - y), c * (x + y)]);
    }
  }
  return [];
}

const ROUND = Array.from({ length: 16 }, (_, i) => [Math.cos((Math.PI * i) / 8), Math.sin((Math.PI * i) / 8)]);
const OUTLINES = SHAPES.map((shape) => (shape === "circle" ? ROUND : corners(shape)));

// The outline of the sign of a class around a place.
export function outline(place: number, x: number, y: number, r: number): number[] {
  const path: number[] = [];
  for (const [dx, dy] of OUTLINES[((place % 9) + 9) % 9]) path.push(x + r * dx, y + r * dy);
  return path;
}

export function ring(x: number, y: number, r: number): number[] {
  const path: number[] = [];
  for (const [dx, dy] of ROUND) path.push(x + r * dx, y + r * dy);
  return path;
}

export function marker(pen: Pen, place: number, x: number, y: number, r: number, fill: string, edge: string, width = 1): void {
  const shape = SHAPES[((place % 9) + 9) % 9];
  if (shape === "circle") {
    pen.circle(x, y, r, { fill, stroke: edge, width });
    return;
  }
  const path: number[] = [];
  for (const [dx, dy] of corners(shape)) path.push(x + r * dx, y + r * dy);
  pen.line(path, { fill, stroke: edge, width }, true);
}
