// The large picture, and the hands on it: click adds, drag moves, Delete removes, a brush selects.

import type { Studio } from "./app";
import { type Box, Frame } from "./axes";
import { curveBox, drawCurve } from "./curve_draw";
import { fill, h } from "./dom";
import { CanvasPen, type Pen, SvgPen } from "./pen";
import { SHAPES, classColour, css, marker } from "./palette";
import { type Scene, drawPlane } from "./plane_draw";
import { type Answer, type Data, short, unpack } from "./wire";

const NEAR = 12;

export class MainView {
  readonly element: HTMLElement;
  readonly canvas = h("canvas", { class: "ms-canvas", tabindex: 0, role: "application", "aria-label": "Picture of the data. Arrow keys move a cursor, Enter adds a point, N and P go from point to point, Delete removes." });
  private bar = h("div", { class: "ms-bar" });
  private status = h("p", { class: "ms-status" });
  private empty = h("div", { class: "ms-empty", role: "status" });
  private view: any = null;
  private frame: Frame | null = null;
  private klass = 0;
  private brushing = false;
  private cursor: [number, number] | null = null;
  private drag: { row: number; moved: boolean; start: [number, number] } | null = null;
  private brush: { from: [number, number]; to: [number, number] } | null = null;
  private locked: Box | null = null;
  private cost = 0;

  constructor(private app: Studio) {
    this.element = h("section", { class: "ms-main", "aria-label": "Picture" }, this.bar, h("div", { class: "ms-stage" }, this.canvas, this.empty), this.status);
    const c = this.canvas;
    c.addEventListener("pointerdown", (e) => this.down(e));
    c.addEventListener("pointermove", (e) => this.move(e));
    c.addEventListener("pointerup", (e) => this.up(e));
    c.addEventListener("pointercancel", () => this.stop());
    c.addEventListener("pointerleave", () => { if (!this.drag) this.app.light(null); });
    c.addEventListener("contextmenu", (e) => { e.preventDefault(); const row = this.near(e); if (row !== null) this.remove([row]); });
    c.addEventListener("keydown", (e) => this.key(e));
    c.addEventListener("blur", () => { this.cursor = null; this.draw(); });
  }

  // ── what is shown ────────────────────────────────────────────────────────────────────────────────────────

  private get data(): Data { return this.app.state.data; }
  private get isCurve(): boolean { return this.data.kind === "vectors" && this.data.columns.length === 1; }
  private get isSlice(): boolean {
    if (this.data.kind !== "vectors" || this.isCurve) return false;
    return this.data.columns.length === 2 || (this.app.state.view.plane ?? "slice") === "slice";
  }
  private get canEdit(): boolean { return this.isCurve ? this.data.task === "numbers" : this.isSlice; }
  private get axes(): [number, number] { return this.app.state.view.axes ?? [0, Math.min(1, this.data.columns.length - 1)]; }

  show(answer: Answer, quick = false): void {
    const view = answer.views.main;
    if (view && !view.problem) {
      this.view = view;
      if (view.mode === "slice" && !this.app.state.view.box) this.app.state.view.box = view.box;
    } else if (answer.problem || view?.problem) this.view = null;
    const sentence = answer.problem?.sentence ?? view?.problem ?? "";
    this.empty.textContent = sentence;
    this.empty.hidden = !sentence;
    if (!quick) this.showBar();
    this.showStatus(answer);
    this.draw();
  }

  private showStatus(answer: Answer): void {
    const fit = answer.fit;
    if (!fit) return fill(this.status, answer.problem ? "" : "…");
    const c = fit.certificate;
    const parts = [
      this.data.task === "classes" ? (fit.score === null ? "" : `${short(100 * fit.score)} % right`) : `root mean square error ${short(fit.score)}`,
      fit.support ? `${fit.support} support vectors, ${fit.bound} at the bound` : "",
      c.gap !== null ? `gap ${short(c.gap)}` : c.residual !== null ? `residual ${short(c.residual)}` : "",
      c.status,
      `fit ${short(1e3 * fit.seconds)} ms`,
    ].filter(Boolean);
    fill(this.status, h("span", {}, parts.join(" · ")), ...fit.said.map((s: string) => h("span", { class: "ms-warn" }, `⚠ ${s}`)));
  }

  private showBar(): void {
    const { data } = this;
    const kids: (Node | string)[] = [];
    if (data.task === "classes" && this.canEdit) {
      const labels = data.labels.length ? data.labels : ["0"];
      const group = h("div", { class: "ms-classes", role: "radiogroup", "aria-label": "Class of new points" });
      const count = Math.min(labels.length + (labels.length < 9 ? 1 : 0), 9);
      for (let k = 0; k < count; k++) group.append(this.swatch(k, labels[k] ?? "new"));
      kids.push(group);
    } else if (data.task === "classes") {
      const group = h("div", { class: "ms-classes" });
      data.labels.forEach((label, k) => group.append(h("span", { class: "ms-swatch ms-plain" }, this.sign(k), label)));
      kids.push(group);
    }
    if (data.kind === "vectors" && data.columns.length > 2) kids.push(...this.planeChoice());
    kids.push(h("div", { class: "ms-space" }));
    if (this.canEdit) {
      kids.push(h("button", { type: "button", class: this.brushing ? "ms-on" : "", "aria-pressed": String(this.brushing), title: "Drag a rectangle to select (or hold Shift)", onclick: () => { this.brushing = !this.brushing; this.showBar(); } }, "Select"));
      if (this.app.selected.size) kids.push(h("button", { type: "button", onclick: () => this.remove([...this.app.selected]) }, `Delete ${this.app.selected.size}`));
      kids.push(h("button", { type: "button", title: "Axes around the points", onclick: () => { this.locked = null; this.app.change((s) => (s.view = { ...s.view, box: null })); } }, "Fit axes"));
      kids.push(h("button", { type: "button", title: "Remove all points", onclick: () => this.remove(data.y.map((_, i) => i)) }, "Clear"));
    }
    if (this.isCurve && this.view?.paths !== undefined && this.app.state.first.machine === "GaussianProcessRegressor") {
      const on = (this.app.state.view.samples ?? 5) > 0;
      kids.push(h("button", { type: "button", class: on ? "ms-on" : "", "aria-pressed": String(on), onclick: () => this.app.change((s) => (s.view = { ...s.view, samples: on ? 0 : 5 })) }, "Paths"));
    }
    fill(this.bar, ...kids);
  }

  private swatch(place: number, label: string): HTMLElement {
    const on = place === this.klass;
    return h("button", { type: "button", role: "radio", "aria-checked": String(on), class: `ms-swatch${on ? " ms-on" : ""}`, title: `Class ${label}: key ${place + 1}`, onclick: () => this.useClass(place) }, this.sign(place), label);
  }

  private sign(place: number): HTMLElement {
    const colour = css(classColour(place, this.app.theme));
    const pen = new SvgPen(14, 14, "transparent");
    marker(pen, place, 7, 7, 4.6, colour, colour, 0);
    const holder = h("span", { class: "ms-sign", "data-shape": SHAPES[place], "aria-hidden": "true" });
    holder.innerHTML = pen.file();
    return holder;
  }

  private planeChoice(): HTMLElement[] {
    const { data } = this;
    const slice = this.isSlice;
    const set = (edit: object) => this.app.change((s) => (s.view = { ...s.view, box: null, ...edit }));
    const out = [h("button", { type: "button", class: slice ? "" : "ms-on", "aria-pressed": String(!slice), title: "The plane of the two leading kernel principal components", onclick: () => set({ plane: slice ? "components" : "slice", axes: this.widest() }) }, "Kernel PCA")];
    if (!slice) return out;
    const axes = this.axes;
    ["across", "up"].forEach((word, k) => {
      const pick = h("select", { "aria-label": `Column ${word}` });
      data.columns.forEach((name, c) => { const o = h("option", { value: c }, name); o.selected = c === axes[k]; pick.append(o); });
      pick.addEventListener("change", () => { const next: [number, number] = [...axes]; next[k] = Number(pick.value); set({ axes: next }); });
      out.push(pick as unknown as HTMLButtonElement);
    });
    return out;
  }

  // The two columns that vary most.
  private widest(): [number, number] {
    const { X, columns } = this.data;
    const middle = this.middle();
    const spread = columns.map((_, c) => X.reduce((sum, row) => sum + (row[c] - middle[c]) ** 2, 0));
    const order = columns.map((_, c) => c).sort((a, b) => spread[b] - spread[a]);
    return [order[0], order[1]];
  }

  private places(): ArrayLike<number> {
    const { data } = this;
    if (data.kind === "vectors" && (this.isSlice || this.isCurve)) {
      const [a, b] = this.axes;
      const out = new Float64Array(2 * data.X.length);
      for (let i = 0; i < data.X.length; i++) {
        out[2 * i] = data.X[i][a];
        out[2 * i + 1] = this.isCurve ? (data.task === "numbers" ? data.y[i] : 2 * data.y[i] - 1) : data.X[i][b];
      }
      return out;
    }
    return this.view?.places ? unpack(this.view.places) : new Float32Array(2 * data.y.length);
  }

  private scene(): Scene {
    const why = this.app.side?.why ?? null;
    const places = this.places();
    const chosen = this.app.state.view.chosen ?? why?.of.row ?? null;
    let from: [number, number] | null = null;
    if (why && why.of.row !== undefined && why.of.row < this.data.y.length) from = [places[2 * why.of.row], places[2 * why.of.row + 1]];
    else if (why?.of.at) from = why.of.at;
    const scene: Scene = {
      view: this.view, data: this.data, places, chosen, from,
      box: this.app.answer?.box ?? [-2, 2, -2, 2],
      hover: this.app.hover, selected: this.app.selected, cursor: this.cursor,
      lines: why ? why.terms.slice(0, 6).filter((t: any) => t.row < this.data.y.length) : [],
    };
    if (this.isCurve) scene.box = this.locked ?? curveBox(scene);
    else if (this.view?.box) scene.box = this.view.box;
    return scene;
  }

  // Width of the frame over its height, so that a unit is as long across as up.
  aspect(): number | undefined {
    const [w, h] = [this.canvas.clientWidth - 54, this.canvas.clientHeight - 44];
    return w > 50 && h > 50 ? Math.min(Math.max(Number((w / h).toFixed(3)), 0.2), 5) : undefined;
  }

  private paint(pen: Pen): Frame {
    const scene = this.scene();
    const frame = this.isCurve ? drawCurve(pen, scene, this.app.theme) : drawPlane(pen, scene, this.app.theme);
    if (this.brush) {
      const { from, to } = this.brush;
      pen.line([from[0], from[1], to[0], from[1], to[0], to[1], from[0], to[1]], { stroke: this.app.theme.accent, width: 1.5, dash: [4, 3], fill: "rgba(80,150,255,0.12)" }, true);
    }
    return frame;
  }

  draw(): void {
    if (!this.canvas.clientWidth) return;
    const start = performance.now();
    this.frame = this.paint(new CanvasPen(this.canvas));
    this.cost = performance.now() - start;
  }

  svg(): string {
    const pen = new SvgPen(this.canvas.clientWidth, this.canvas.clientHeight, this.app.theme.paper);
    this.paint(pen);
    return pen.file();
  }

  // ── hands ────────────────────────────────────────────────────────────────────────────────────────────────

  private at(event: PointerEvent | MouseEvent): [number, number] {
    const box = this.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  private near(event: PointerEvent | MouseEvent): number | null {
    if (!this.frame) return null;
    const [px, py] = this.at(event);
    const places = this.places();
    let best: number | null = null, least = NEAR * NEAR;
    for (let i = 0; i < this.data.y.length; i++) {
      const d = (this.frame.x(places[2 * i]) - px) ** 2 + (this.frame.y(places[2 * i + 1]) - py) ** 2;
      if (d < least) [best, least] = [i, d];
    }
    return best;
  }

  private down(event: PointerEvent): void {
    if (event.button !== 0 || !this.frame) return;
    this.cursor = null;
    this.canvas.focus({ preventScroll: true });
    const at = this.at(event);
    if (this.canEdit && (event.shiftKey || this.brushing)) {
      this.brush = { from: at, to: at };
    } else {
      const row = this.near(event);
      this.drag = { row: row ?? -1, moved: false, start: at };
      if (this.isCurve && row !== null) this.locked = this.frame.box;
    }
    this.canvas.setPointerCapture(event.pointerId);
  }

  private move(event: PointerEvent): void {
    const at = this.at(event);
    if (this.brush) {
      this.brush.to = at;
      return this.draw();
    }
    const drag = this.drag;
    if (!drag) {
      const row = this.near(event);
      this.canvas.style.cursor = row !== null ? "grab" : this.canEdit ? "crosshair" : "default";
      this.canvas.title = row !== null ? this.describe(row) : "";
      return this.app.light(row);
    }
    if (drag.row < 0 || !this.canEdit || !this.frame) return;
    if (!drag.moved && Math.hypot(at[0] - drag.start[0], at[1] - drag.start[1]) < 3) return;
    if (!drag.moved) {
      drag.moved = true;
      // from here on the server counts from this state, with the axes held
      this.app.change((s) => { s.data = { ...s.data, preset: "", X: s.data.X.slice(), y: s.data.y.slice() }; }, true);
    }
    const place = this.put(drag.row, this.frame.back(at[0], at[1]));
    this.app.askMove(drag.row, place);
    // the answer draws too: on a slow machine once is enough
    if (this.cost < 12) this.draw();
  }

  // Writes the new place of a row, and returns what the server is told.
  private put(row: number, [x, y]: [number, number]): number[] {
    const data = this.data;
    const clean = (v: number) => Number(v.toPrecision(6));
    if (this.isCurve) {
      data.X[row] = [clean(x)];
      data.y[row] = clean(y);
      return [clean(x), clean(y)];
    }
    const [a, b] = this.axes;
    const next = data.X[row].slice();
    next[a] = clean(x);
    next[b] = clean(y);
    data.X[row] = next;
    return next;
  }

  private up(event: PointerEvent): void {
    const { drag, brush } = this;
    this.stop();
    if (brush) return this.brushed(brush.from, brush.to);
    if (!drag || !this.frame) return;
    if (drag.moved) return this.app.change(() => undefined);
    if (drag.row >= 0) {
      this.app.selected = new Set([drag.row]);
      this.app.change((s) => (s.view = { ...s.view, chosen: drag.row, at: null }));
      this.app.say(this.describe(drag.row));
    } else if (this.canEdit && this.frame.holds(...this.at(event))) this.add(this.frame.back(...this.at(event)));
  }

  private stop(): void {
    this.drag = null;
    this.brush = null;
    this.locked = null;
  }

  private brushed(a: [number, number], b: [number, number]): void {
    if (!this.frame) return;
    const places = this.places();
    const found = new Set<number>();
    for (let i = 0; i < this.data.y.length; i++) {
      const x = this.frame.x(places[2 * i]), y = this.frame.y(places[2 * i + 1]);
      if (x >= Math.min(a[0], b[0]) && x <= Math.max(a[0], b[0]) && y >= Math.min(a[1], b[1]) && y <= Math.max(a[1], b[1])) found.add(i);
    }
    this.app.selected = found;
    this.app.say(`${found.size} points selected.`);
    this.showBar();
    this.draw();
  }

  private add(place: [number, number]): void {
    const clean = (v: number) => Number(v.toPrecision(6));
    this.app.change((s) => {
      const data = { ...s.data, preset: "", X: s.data.X.slice(), y: s.data.y.slice(), labels: s.data.labels.slice() };
      if (this.isCurve) {
        data.X.push([clean(place[0])]);
        data.y.push(clean(place[1]));
      } else {
        const [a, b] = this.axes;
        const row: number[] = (s.view.held ?? this.middle()).slice();
        row[a] = clean(place[0]);
        row[b] = clean(place[1]);
        data.X.push(row);
        while (data.labels.length <= this.klass) data.labels.push(String(data.labels.length));
        data.y.push(this.klass);
      }
      s.data = data;
    });
    this.app.say(`Point ${this.data.y.length} added.`);
  }

  private middle(): number[] {
    const { data } = this;
    return data.columns.map((_, c) => (data.X.length ? data.X.reduce((sum, row) => sum + row[c], 0) / data.X.length : 0));
  }

  private remove(rows: number[]): void {
    if (!rows.length || (!this.canEdit && this.data.kind === "vectors" && !this.isSlice)) return;
    const gone = new Set(rows);
    this.app.selected = new Set();
    this.app.light(null);
    this.app.change((s) => {
      const stay = s.data.y.map((_, i) => i).filter((i) => !gone.has(i));
      s.data = { ...s.data, preset: "", X: stay.map((i) => s.data.X[i]), y: stay.map((i) => s.data.y[i]) };
      s.view = { ...s.view, chosen: null };
    });
    this.app.say(`${rows.length} removed.`);
  }

  useClass(place: number): void {
    if (this.data.task !== "classes" || place > Math.min(this.data.labels.length, 8)) return;
    this.klass = place;
    this.showBar();
    this.app.say(`New points are of class ${this.data.labels[place] ?? place}.`);
  }

  describe(row: number): string {
    const { data } = this;
    const f = this.view?.f ? unpack(this.view.f)[row] : NaN;
    const label = data.task === "classes" ? `class ${data.labels[data.y[row]]}` : `${data.target} ${short(data.y[row], 5)}`;
    const what = data.kind === "strings" ? ` ${data.X[row]}` : "";
    return `Row ${row + 1}:${what} ${label}, f = ${short(f, 4)}`;
  }

  private key(event: KeyboardEvent): void {
    const step: Record<string, [number, number]> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    if (!this.frame) return;
    const box = this.frame.box;
    if (step[event.key]) {
      event.preventDefault();
      const dx = (step[event.key][0] * (box[1] - box[0])) / 40, dy = (step[event.key][1] * (box[3] - box[2])) / 40;
      const chosen = this.app.state.view.chosen ?? null;
      if (event.shiftKey && chosen !== null && this.canEdit) return this.nudge(chosen, dx, dy);
      const now = this.cursor ?? [(box[0] + box[1]) / 2, (box[2] + box[3]) / 2];
      this.cursor = [Math.min(Math.max(now[0] + dx, box[0]), box[1]), Math.min(Math.max(now[1] + dy, box[2]), box[3])];
      this.draw();
    } else if ((event.key === "Enter" || event.key === " ") && this.canEdit) {
      event.preventDefault();
      this.add(this.cursor ?? [(box[0] + box[1]) / 2, (box[2] + box[3]) / 2]);
    } else if (event.key === "n" || event.key === "p") {
      this.next(event.key === "n" ? 1 : -1);
    } else if (event.key === "Delete" || event.key === "Backspace") {
      event.preventDefault();
      const chosen = this.app.state.view.chosen ?? null;
      this.remove(this.app.selected.size ? [...this.app.selected] : chosen !== null ? [chosen] : []);
    } else if (event.key === "Escape") {
      this.app.selected.clear();
      this.cursor = null;
      this.app.change((s) => (s.view = { ...s.view, chosen: null }));
    }
  }

  private next(way: number): void {
    const n = this.data.y.length;
    if (!n) return;
    const row = ((this.app.state.view.chosen ?? (way > 0 ? -1 : 0)) + way + n) % n;
    this.app.selected = new Set([row]);
    this.app.change((s) => (s.view = { ...s.view, chosen: row, at: null }));
    this.app.say(this.describe(row));
  }

  private nudge(row: number, dx: number, dy: number): void {
    const places = this.places();
    this.app.change((s) => {
      s.data = { ...s.data, preset: "", X: s.data.X.slice(), y: s.data.y.slice() };
      this.put(row, [places[2 * row] + dx, places[2 * row + 1] + dy]);
    });
  }
}
