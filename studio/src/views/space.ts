// Feature space in three dimensions, to be turned by hand or by keys.

import type { Studio } from "../app";
import { extent } from "../axes";
import { choose, fill, h } from "../dom";
import { classColour, css, marker, viridis } from "../palette";
import { CanvasPen } from "../pen";
import { range } from "../plane_draw";
import { short, unpack } from "../wire";

type Vec = [number, number, number];

export class SpaceView {
  readonly element = h("div");
  private canvas = h("canvas", { class: "ms-square", tabindex: 0, role: "application", "aria-label": "Feature space in three dimensions. Arrow keys turn it." });
  private view: any = null;
  private turn = 0.7;
  private tilt = 0.35;
  private held: [number, number] | null = null;

  constructor(private app: Studio) {
    const c = this.canvas;
    c.addEventListener("pointerdown", (e) => { this.held = [e.clientX, e.clientY]; c.setPointerCapture(e.pointerId); });
    c.addEventListener("pointerup", () => (this.held = null));
    c.addEventListener("pointermove", (e) => {
      if (!this.held) return this.app.light(this.near(e.offsetX, e.offsetY));
      this.spin((e.clientX - this.held[0]) / 120, (e.clientY - this.held[1]) / 120);
      this.held = [e.clientX, e.clientY];
    });
    c.addEventListener("keydown", (e) => {
      const way = { ArrowLeft: [-0.15, 0], ArrowRight: [0.15, 0], ArrowUp: [0, -0.15], ArrowDown: [0, 0.15] }[e.key];
      if (way) { e.preventDefault(); this.spin(way[0], way[1]); }
    });
  }

  private spin(a: number, b: number): void {
    this.turn += a;
    this.tilt = Math.min(Math.max(this.tilt + b, -1.4), 1.4);
    this.draw();
  }

  show(view: any): void {
    this.view = view;
    const told = view.mode === "map"
      ? `φ has ${view.dimension} coordinates${view.dimension > 3 ? "; three are drawn" : ": this is all of it"}.`
      : `φ has more coordinates than can be drawn: kernel principal components, ${view.shares.map((s: number) => `${short(100 * s)} %`).join(", ")} of the variance.`;
    const plane = view.plane
      ? view.exact ? "The plane is the machine's own hyperplane, cut by this picture." : "The plane is where w·φ + b = 0 with the other coordinates at their mean."
      : "";
    const picks: HTMLElement[] = [];
    if (view.mode === "map" && view.dimension > 3) {
      for (let k = 0; k < 3; k++) {
        picks.push(choose(view.all.map((name: string, c: number) => [String(c), name]), String(view.chosen[k]), (c) => {
          const next = [...view.chosen] as Vec;
          next[k] = Number(c);
          this.app.change((s) => (s.view = { ...s.view, coordinates: next }));
        }, `Coordinate ${k + 1}`));
      }
    }
    fill(this.element, h("div", { class: "ms-row" }, ...picks), this.canvas, h("p", { class: "ms-hint" }, `${told} ${plane} Drag to turn.`));
    this.draw();
  }

  private project([x, y, z]: Vec): [number, number, number] {
    const a = x * Math.cos(this.turn) - y * Math.sin(this.turn);
    const b = x * Math.sin(this.turn) + y * Math.cos(this.turn);
    const up = z * Math.cos(this.tilt) - b * Math.sin(this.tilt);
    const deep = b * Math.cos(this.tilt) + z * Math.sin(this.tilt);
    const size = 0.3 * Math.min(this.canvas.clientWidth, this.canvas.clientHeight);
    const s = size * (1 - 0.12 * deep);
    return [this.canvas.clientWidth / 2 + s * a, this.canvas.clientHeight / 2 - s * up, deep];
  }

  private boxes(): [number, number][] {
    const places = unpack(this.view.places);
    return [0, 1, 2].map((c) => extent(Array.from({ length: places.length / 3 }, (_, i) => places[3 * i + c])));
  }

  private scaled(raw: Vec, boxes: [number, number][]): Vec {
    return raw.map((v, c) => (2 * (v - boxes[c][0])) / (boxes[c][1] - boxes[c][0]) - 1) as Vec;
  }

  private spots(): { row: number; at: [number, number, number] }[] {
    const places = unpack(this.view.places);
    const boxes = this.boxes();
    const out = [];
    for (let i = 0; i < places.length / 3; i++) out.push({ row: i, at: this.project(this.scaled([places[3 * i], places[3 * i + 1], places[3 * i + 2]], boxes)) });
    return out.sort((p, q) => q.at[2] - p.at[2]);
  }

  private near(x: number, y: number): number | null {
    if (!this.view) return null;
    let best: number | null = null, least = 100;
    for (const spot of this.spots()) {
      const d = (spot.at[0] - x) ** 2 + (spot.at[1] - y) ** 2;
      if (d < least) [best, least] = [spot.row, d];
    }
    return best;
  }

  draw(): void {
    if (!this.view || !this.canvas.clientWidth) return;
    const theme = this.app.theme;
    const pen = new CanvasPen(this.canvas);
    const data = this.app.state.data;
    const line = (a: Vec, b: Vec, stroke: string) => { const p = this.project(a), q = this.project(b); pen.line([p[0], p[1], q[0], q[1]], { stroke }); };
    for (const u of [-1, 1]) for (const v of [-1, 1]) {
      line([-1, u, v], [1, u, v], theme.faint);
      line([u, -1, v], [u, 1, v], theme.faint);
      line([u, v, -1], [u, v, 1], theme.faint);
    }
    const ends: Vec[] = [[1.15, -1, -1.15], [-1, 1.15, -1.15], [-1, -1, 1.2]];
    ends.forEach((end, c) => { const p = this.project(end); pen.text(this.view.names[c] ?? "", p[0], p[1], { fill: theme.soft, align: "center" }); });
    if (this.view.plane) this.drawPlane(pen);
    const [low, high] = range(data.y);
    for (const { row, at } of this.spots()) {
      if (row >= data.y.length) continue;
      const numbers = data.task === "numbers";
      const colour = numbers ? viridis((data.y[row] - low) / (high - low || 1)) : classColour(data.y[row], theme);
      marker(pen, numbers ? 0 : data.y[row], at[0], at[1], 4.2 - 0.9 * at[2], css(colour), theme.paper, 0.8);
      if (row === this.app.hover || row === this.app.state.view.chosen) pen.circle(at[0], at[1], 9, { stroke: theme.accent, width: 2.2 });
    }
  }

  // Where the plane meets the edges of the box, in order around its middle.
  private drawPlane(pen: CanvasPen): void {
    const [a, b, c, level] = this.view.plane as number[];
    const boxes = this.boxes();
    const raw = (p: Vec): Vec => p.map((v, k) => boxes[k][0] + ((v + 1) / 2) * (boxes[k][1] - boxes[k][0])) as Vec;
    const f = (p: Vec) => { const q = raw(p); return a * q[0] + b * q[1] + c * q[2] + level; };
    const cuts: Vec[] = [];
    for (let axis = 0; axis < 3; axis++) for (const u of [-1, 1]) for (const v of [-1, 1]) {
      const make = (w: number): Vec => { const p = [u, v]; p.splice(axis, 0, w); return p as Vec; };
      const [low, high] = [f(make(-1)), f(make(1))];
      if (low < 0 !== high < 0) cuts.push(make(-1 + (2 * low) / (low - high)));
    }
    if (cuts.length < 3) return;
    const flat = cuts.map((p) => this.project(p));
    const mx = flat.reduce((s, p) => s + p[0], 0) / flat.length, my = flat.reduce((s, p) => s + p[1], 0) / flat.length;
    flat.sort((p, q) => Math.atan2(p[1] - my, p[0] - mx) - Math.atan2(q[1] - my, q[0] - mx));
    pen.line(flat.flatMap((p) => [p[0], p[1]]), { fill: this.app.theme.accent, stroke: this.app.theme.accent, alpha: 0.22 }, true);
  }
}
