// The Gram matrix as a heat map, its spectrum, and what both say.

import type { Studio } from "../app";
import { Frame, extent } from "../axes";
import { choose, field, fill, h } from "../dom";
import { classColour, css, diverging, hex, mix, viridis } from "../palette";
import { CanvasPen } from "../pen";
import { short, unpack } from "../wire";

export class GramView {
  readonly element = h("div");
  private map = h("canvas", { class: "ms-square", role: "img", "aria-label": "Heat map of the Gram matrix" });
  private bars = h("canvas", { class: "ms-small", role: "img", "aria-label": "Eigenvalues of the Gram matrix" });
  private told = h("p", { class: "ms-hint" });
  private view: any = null;

  constructor(private app: Studio) {
    this.map.addEventListener("pointermove", (event) => this.point(event));
    this.map.addEventListener("pointerleave", () => this.app.light(null));
  }

  show(view: any): void {
    this.view = view;
    const order = choose([["class", "by class or target"], ["cluster", "by cluster"], ["given", "as given"]], this.app.state.view.order ?? "class", (name) =>
      this.app.change((s) => (s.view = { ...s.view, order: name })), "Order of the rows");
    const n = view.rows.length;
    const facts: [string, string][] = [
      ["verdict", view.verdict],
      ["effective rank", `${short(view.effectiveRank)} by entropy, ${view.rank} of ${n} numerically`],
      ["condition number", view.condition === null ? "infinite" : short(view.condition)],
      ["alignment with the target", view.alignment === null ? "–" : short(view.alignment)],
    ];
    if (view.duplicates) facts.push(["same to the kernel", `${view.duplicates} pairs of rows`]);
    fill(
      this.element,
      field("rows", order),
      this.map,
      this.told,
      h("table", { class: "ms-facts" }, h("tbody", {}, ...facts.map(([k, v]) => h("tr", {}, h("th", {}, k), h("td", {}, v))))),
      h("h3", {}, "Eigenvalues"),
      this.bars,
      view.of > n ? h("p", { class: "ms-hint" }, `${n} of ${view.of} rows are shown, evenly drawn.`) : null,
    );
    this.draw();
  }

  private side(): number { return Math.min(this.map.clientWidth, this.map.clientHeight) - 10; }

  private point(event: PointerEvent): void {
    const rows: number[] = this.view?.rows ?? [];
    const cell = this.side() / rows.length;
    const [i, j] = [Math.floor((event.offsetY - 8) / cell), Math.floor((event.offsetX - 8) / cell)];
    if (!(i >= 0 && j >= 0 && i < rows.length && j < rows.length)) return this.app.light(null);
    const K = unpack(this.view.matrix);
    this.told.textContent = `k(row ${rows[i] + 1}, row ${rows[j] + 1}) = ${short(K[i * rows.length + j], 4)}`;
    this.app.light(rows[i]);
  }

  draw(): void {
    const { view } = this;
    if (!view || !this.map.clientWidth) return;
    const theme = this.app.theme;
    const pen = new CanvasPen(this.map);
    const n = view.rows.length;
    const K = unpack(view.matrix);
    const [low, high] = extent(K);
    const paper = hex(theme.paper);
    const signed = low < -1e-6 * high;
    const most = Math.max(Math.abs(low), Math.abs(high)) || 1;
    const image = new ImageData(n, n);
    for (let i = 0; i < n * n; i++) {
      const c = signed ? diverging(K[i] / most, classColour(0, theme), classColour(1, theme), paper) : mix(paper, viridis((K[i] - Math.min(low, 0)) / (high - Math.min(low, 0) || 1)), 0.95);
      image.data.set([c[0], c[1], c[2], 255], 4 * i);
    }
    const side = this.side();
    pen.image(image, 8, 8, side, side, false);
    if (view.classes) view.classes.forEach((c: number, i: number) => {
      const y = 8 + (i * side) / n;
      pen.line([3, y, 3, y + side / n], { stroke: css(classColour(c, theme)), width: 5 });
      pen.line([y, 3, y + side / n, 3], { stroke: css(classColour(c, theme)), width: 5 });
    });
    const lit = this.app.hover === null ? -1 : view.rows.indexOf(this.app.hover);
    if (lit >= 0) {
      const y = 8 + ((lit + 0.5) * side) / n;
      pen.line([8, y, 8 + side, y], { stroke: theme.accent, width: 1.5 });
      pen.line([y, 8, y, 8 + side], { stroke: theme.accent, width: 1.5 });
    }
    this.spectrum();
  }

  private spectrum(): void {
    const theme = this.app.theme;
    const pen = new CanvasPen(this.bars);
    const values = unpack(this.view.spectrum);
    const floor = Math.max(values[0], 1e-300) * 1e-17;
    const logs = Float64Array.from(values, (v) => Math.log10(Math.max(Math.abs(v), floor)));
    const [low, high] = extent(logs);
    const frame = Frame.on(pen, [0, values.length + 1, low - 0.3, high + 0.3]);
    frame.draw(pen, theme, ["number", "log₁₀ |λ|"], true);
    frame.clip(pen, () => logs.forEach((v, i) => {
      const negative = values[i] < 0;
      pen.circle(frame.x(i + 1), frame.y(v), 2, negative ? { stroke: css(classColour(1, theme)), width: 1.2 } : { fill: css(classColour(0, theme)) });
    }));
  }
}
