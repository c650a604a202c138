// Compare: a second machine on the same data, and where the two differ.

import type { Studio } from "../app";
import { Frame, drawGrid, drawLine, extent, pixels, shaped } from "../axes";
import { machineControls } from "../controls";
import { fill, h } from "../dom";
import { classColour, css, hex, mix, viridis } from "../palette";
import { CanvasPen } from "../pen";
import { drawField } from "../plane_draw";
import { type Choice, short, unpack } from "../wire";

export class CompareView {
  readonly element = h("div");
  private canvas = h("canvas", { class: "ms-wide", role: "img", "aria-label": "The second machine" });
  private apart = h("canvas", { class: "ms-wide", role: "img", "aria-label": "Difference of the two machines" });
  private view: any = null;

  constructor(private app: Studio) {}

  private other(): Choice {
    const first = this.app.state.first;
    return this.app.state.second ?? { ...first, moved: {}, approximation: first.approximation === "none" ? "Nystroem" : "none" };
  }

  show(view: any): void {
    this.view = view;
    const other = this.other();
    const set = (edit: (c: Choice) => Choice, quick?: boolean) => this.app.change((s) => (s.second = edit(this.other())), quick);
    const kernel = h("input", { type: "text", value: other.kernel, "aria-label": "Kernel of the second machine", spellcheck: "false" });
    kernel.addEventListener("change", () => set((c) => ({ ...c, kernel: kernel.value, moved: {} })));
    const rows: [string, string, string][] = [
      ["", "first", "second"],
      ["right, or error", short(view.first.score), short(view.second.score)],
      ["gap", short(view.first.certificate.gap), short(view.second.certificate.gap)],
      ["fit", `${short(1e3 * view.first.seconds)} ms`, `${short(1e3 * view.second.seconds)} ms`],
    ];
    const told = [
      view.grid ? `In the picture the functions are ${short(view.grid.rms)} apart (root mean square), ${short(view.grid.most)} at most.` : "",
      view.rows ? `On the rows ${short(view.rows.rms)}, ${short(view.rows.most)} at most.` : "",
      view.disagree !== undefined ? `They disagree on ${view.disagree} rows.` : "",
    ].filter(Boolean).join(" ");
    fill(
      this.element,
      h("h3", {}, "Second machine"),
      machineControls(this.app, other, set),
      kernel,
      h("table", { class: "ms-facts" }, h("tbody", {}, ...rows.map(([k, a, b], i) => h("tr", {}, h("th", {}, k), h(i ? "td" : "th", {}, a), h(i ? "td" : "th", {}, b))))),
      h("p", {}, told),
      ...(view.mode === "plane" ? [h("h3", {}, "Second machine, in the plane"), this.canvas, h("h3", {}, "Difference"), this.apart] : []),
      ...(view.mode === "curve" ? [h("h3", {}, "Both"), this.canvas] : []),
    );
    this.draw();
  }

  draw(): void {
    const { view } = this;
    if (!view || !this.canvas.clientWidth) return;
    const theme = this.app.theme;
    shaped(this.canvas, view.box);
    shaped(this.apart, view.box);
    const pen = new CanvasPen(this.canvas);
    if (view.mode === "curve") {
      const x = unpack(view.x), lines = view.lines.map(unpack);
      const [low, high] = extent(...lines);
      const frame = Frame.on(pen, [x[0], x[x.length - 1], low, high]);
      frame.draw(pen, theme, null, true);
      lines.forEach((line: Float32Array, k: number) => drawLine(pen, frame, x, line, css(classColour(k, theme)), 2, 1, k ? [6, 4] : []));
      return;
    }
    const data = this.app.state.data;
    const frame = Frame.on(pen, view.box, { l: 8, r: 8, t: 8, b: 8 });
    drawField(pen, frame, { field: view.fields[1], sides: this.app.answer?.views.main?.sides ?? null, margin: false }, data, theme);
    const under = new CanvasPen(this.apart);
    const second = Frame.on(under, view.box, { l: 8, r: 8, t: 8, b: 22 });
    const gap = unpack(view.difference);
    const [, high] = extent(gap);
    const [rows, columns] = view.difference.shape;
    drawGrid(under, second, pixels(columns, rows, (i) => mix(hex(theme.paper), viridis(gap[i] / (high || 1)), 0.9)));
    under.text(`from 0 to ${short(high)}`, second.left, under.height - 9, { fill: theme.soft });
  }
}
