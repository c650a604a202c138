// Choice: the criterion over two numbers, the path of a search, and a cursor that sets both.

import type { Studio } from "../app";
import { Frame, drawGrid, extent, pixels } from "../axes";
import { choose, fill, h } from "../dom";
import { hex, marker, mix, viridis } from "../palette";
import { CanvasPen } from "../pen";
import { readable } from "../controls";
import { short, unpack } from "../wire";

export class ChoiceView {
  readonly element = h("div");
  private canvas = h("canvas", { class: "ms-square", tabindex: 0, role: "application", "aria-label": "The criterion over two numbers. Click, or press Enter, to take the best numbers." });
  private told = h("p", { class: "ms-hint" });
  private view: any = null;
  private frame: Frame | null = null;

  constructor(private app: Studio) {
    this.canvas.addEventListener("pointermove", (e) => this.point(e));
    this.canvas.addEventListener("click", (e) => { const at = this.place(e); if (at) this.use(at[0], at[1]); });
    this.canvas.addEventListener("keydown", (e) => { if (e.key === "Enter") this.best(); });
  }

  show(view: any): void {
    this.view = view;
    const pick = (k: number) => choose(view.known.map((n: string) => [n, readable(n)]), view.names[k], (name) => {
      const next = [...view.names] as [string, string];
      next[k] = name;
      this.app.change((s) => (s.view = { ...s.view, surface: next }));
    }, k ? "Number upwards" : "Number across");
    fill(
      this.element,
      h("p", {}, `${view.criterion[0].toUpperCase()}${view.criterion.slice(1)}${view.higher ? ": the higher, the better." : ": the lower, the better."}`),
      h("div", { class: "ms-row" }, pick(0), pick(1)),
      this.canvas,
      this.told,
      h("div", { class: "ms-row" }, h("button", { type: "button", onclick: () => this.best() }, "Take the best of the search")),
      h("p", { class: "ms-hint" }, `The line is a search from a corner (${view.path.length} steps). Click to set both numbers. Computed on ${view.rows} rows.`),
    );
    const last = view.path[view.path.length - 1] ?? [1, 1, NaN];
    this.told.textContent = `The search ended at ${short(last[0])} and ${short(last[1])}: ${view.criterion} ${short(last[2], 4)}.`;
    this.draw();
  }

  private place(event: MouseEvent): [number, number] | null {
    if (!this.frame || !this.frame.holds(event.offsetX, event.offsetY)) return null;
    const [u, v] = this.frame.back(event.offsetX, event.offsetY);
    return [10 ** u, 10 ** v];
  }

  private point(event: PointerEvent): void {
    const at = this.place(event);
    if (!at) return;
    const { view } = this;
    const near = (list: number[], x: number) => list.reduce((b, v, i) => (Math.abs(Math.log(v / x)) < Math.abs(Math.log(list[b] / x)) ? i : b), 0);
    const [i, j] = [near(view.a, at[0]), near(view.b, at[1])];
    this.told.textContent = `${readable(view.names[0])} ${short(at[0])}, ${readable(view.names[1])} ${short(at[1])}: ${view.criterion} ${short(unpack(view.values)[j * view.a.length + i], 4)}`;
  }

  private best(): void {
    const { path, higher } = this.view;
    const best = path.reduce((a: number[], b: number[]) => ((higher ? b[2] > a[2] : b[2] < a[2]) ? b : a));
    this.use(best[0], best[1]);
  }

  private use(a: number, b: number): void {
    const { view } = this;
    this.app.change((s) => {
      const moved = { ...s.first.moved }, settings = { ...s.first.settings };
      [a, b].forEach((value, k) => {
        const clean = Number(value.toPrecision(4));
        if (view.places[k] === null) settings[view.names[k]] = clean;
        else {
          const info = this.app.answer?.kernel?.sliders[view.places[k]];
          moved[view.places[k]] = info && info.value < 0 ? -clean : clean;
        }
      });
      s.first = { ...s.first, moved, settings };
    });
  }

  draw(): void {
    const { view } = this;
    if (!view || !this.canvas.clientWidth) return;
    const theme = this.app.theme;
    const pen = new CanvasPen(this.canvas);
    const a = view.a.map(Math.log10), b = view.b.map(Math.log10);
    const values = unpack(view.values);
    // what is far below the best would hide where the best is
    const sorted = Float32Array.from(values).filter(Number.isFinite).sort();
    let [low, high] = extent(sorted);
    if (view.higher) low = Math.max(low, sorted[Math.floor(0.3 * sorted.length)]);
    const frame = (this.frame = Frame.on(pen, [a[0], a[a.length - 1], b[0], b[b.length - 1]]));
    drawGrid(pen, frame, pixels(a.length, b.length, (i) => {
      if (!Number.isFinite(values[i])) return hex(theme.faint);
      const t = (values[i] - low) / (high - low || 1);
      return mix(hex(theme.paper), viridis(view.higher ? t : 1 - t), 0.9);
    }));
    frame.draw(pen, theme, [`log₁₀ ${readable(view.names[0])}`, `log₁₀ ${readable(view.names[1])}`]);
    frame.clip(pen, () => {
      const path = view.path.flatMap((p: number[]) => [frame.x(Math.log10(p[0])), frame.y(Math.log10(p[1]))]);
      pen.line(path, { stroke: theme.dark ? "#000" : "#fff", width: 4 });
      pen.line(path, { stroke: "#d6336c", width: 2 });
      for (let i = 0; i < path.length; i += 2) pen.circle(path[i], path[i + 1], i === path.length - 2 ? 5 : 2.5, { fill: "#d6336c", stroke: "#fff", width: 1 });
      const here = [0, 1].map((k) => this.now(k));
      marker(pen, 3, frame.x(Math.log10(here[0])), frame.y(Math.log10(here[1])), 6, theme.paper, theme.ink, 2);
    });
  }

  private now(k: number): number {
    const { view } = this;
    const place = view.places[k];
    if (place !== null) return Math.abs(this.app.answer?.kernel?.sliders[place]?.value ?? 1);
    const offer = this.app.hello.machines.find((m) => m.name === this.app.state.first.machine);
    const usual = offer?.sliders.find((s) => s.name === view.names[k])?.default ?? 1;
    return this.app.state.first.settings[view.names[k]] ?? usual;
  }
}
