// The certificate: how good the answer is, and the way to it, one step at a time.

import type { Studio } from "../app";
import { Frame, drawLine, extent, shaped } from "../axes";
import { fill, h } from "../dom";
import { classColour, css } from "../palette";
import { CanvasPen } from "../pen";
import { drawField, drawPoints } from "../plane_draw";
import { short, unpack } from "../wire";

export class CertificateView {
  readonly element = h("div");
  private way = h("canvas", { class: "ms-small", role: "img", "aria-label": "Primal and dual objective, or error, step by step" });
  private picture = h("canvas", { class: "ms-wide", role: "img", "aria-label": "The function after this step" });
  private told = h("p", { class: "ms-hint", "aria-live": "polite" });
  private slider = h("input", { type: "range", min: 0, step: 1, "aria-label": "Step" });
  private player = h("button", { type: "button", class: "ms-play", onclick: () => this.play() }, "Play");
  private playing = 0;
  private view: any = null;
  private at = 0;

  constructor(private app: Studio) {
    this.slider.addEventListener("input", () => { this.pause(); this.go(Number(this.slider.value)); });
  }

  show(view: any): void {
    this.view = view;
    this.pause();
    const c = view.certificate;
    const facts: [string, string][] = [["status", c.status], ["method", c.method]];
    for (const name of ["primal", "dual", "gap", "kkt", "residual", "iterations", "seconds", "added_diagonal"]) {
      if (c[name] !== null && c[name] !== undefined) facts.push([name.replace("_", " "), short(c[name], 5)]);
    }
    const table = h("table", { class: "ms-facts" }, h("tbody", {}, ...facts.map(([k, v]) => h("tr", {}, h("th", {}, k), h("td", {}, v)))));
    const notes = c.notes.length ? h("ul", {}, ...c.notes.map((n: string) => h("li", {}, n))) : null;
    const worst = c.worst_row !== null && c.worst_row !== undefined
      ? h("button", { type: "button", onclick: () => this.app.change((s) => (s.view = { ...s.view, chosen: c.worst_row })) }, `Worst row: ${c.worst_row + 1}. Show it`)
      : null;
    fill(this.element, table, notes, worst, ...this.steps(view));
    if (view.steps) this.go(view.steps.count - 1);
  }

  private steps(view: any): HTMLElement[] {
    if (!view.steps) return view.why ? [h("p", { class: "ms-hint" }, view.why)] : [];
    const s = view.steps;
    this.slider.max = String(s.count - 1);
    const button = (words: string, label: string, act: () => void) => h("button", { type: "button", class: "ms-icon", "aria-label": label, title: label, onclick: act }, words);
    return [
      h("h3", {}, `One ${s.unit} at a time`),
      h("div", { class: "ms-row ms-player" },
        button("|◂", "First step", () => this.go(0)),
        button("◂", "One step back", () => this.go(this.at - 1)),
        this.player,
        button("▸", "One step on", () => this.go(this.at + 1)),
        this.slider),
      this.told,
      this.picture,
      h("h3", {}, s.primal.some((v: number | null) => v !== null) ? "Primal and dual closing" : s.unit === "mistake" ? "Mistakes" : s.unit === "pass" ? "The dual rising" : "Error falling"),
      this.way,
    ];
  }

  private play(): void {
    if (this.playing) return this.pause();
    const quiet = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (this.at >= this.view.steps.count - 1) this.go(0);
    this.player.textContent = "Pause";
    this.playing = window.setInterval(() => {
      if (!this.element.isConnected || this.at >= this.view.steps.count - 1) return this.pause();
      this.go(this.at + 1);
    }, quiet ? 1000 : 180);
  }

  private pause(): void {
    clearInterval(this.playing);
    this.playing = 0;
    this.player.textContent = "Play";
  }

  private go(step: number): void {
    const s = this.view.steps;
    this.at = Math.min(Math.max(step, 0), s.count - 1);
    this.slider.value = String(this.at);
    const parts = [`${s.unit} ${s.step[this.at]} of ${s.step[s.count - 1]}`];
    if (s.primal[this.at] !== null) parts.push(`primal ${short(s.primal[this.at], 4)}`);
    if (s.dual[this.at] !== null) parts.push(`dual ${short(s.dual[this.at], 4)}`);
    if (s.error[this.at] !== null) parts.push(s.unit === "mistake" ? "" : `error ${short(s.error[this.at], 4)}`);
    this.told.textContent = parts.filter(Boolean).join(" · ");
    this.draw();
  }

  draw(): void {
    const s = this.view?.steps;
    if (!s || !this.way.clientWidth) return;
    this.drawWay(s);
    const fields = unpack(s.fields);
    const data = this.app.state.data;
    const theme = this.app.theme;
    if (!fields.length || !this.picture.clientWidth) return;
    const each = fields.length / s.count;
    const f = fields.subarray(this.at * each, (this.at + 1) * each);
    const coefficients = unpack(s.coefficients);
    const weights = coefficients.subarray(this.at * data.y.length, (this.at + 1) * data.y.length).map(Math.abs);
    shaped(this.picture, s.box);
    const pen = new CanvasPen(this.picture);
    if (s.mode === "curve") {
      const x = unpack(s.x);
      const [low, high] = extent(data.y, f);
      const frame = Frame.on(pen, [x[0], x[x.length - 1], low, high]);
      frame.draw(pen, theme, null, true);
      drawLine(pen, frame, x, f, css(classColour(0, theme)), 2);
      data.X.forEach((row, i) => pen.circle(frame.x(row[0]), frame.y(data.y[i]), 2.4, { fill: theme.ink }));
      return;
    }
    const frame = Frame.on(pen, s.box, { l: 8, r: 8, t: 8, b: 8 });
    const main = this.app.answer?.views.main;
    const packed = { f32: pack(f), shape: s.shape };
    drawField(pen, frame, { field: packed, sides: main?.sides ?? [0, 1], margin: s.unit !== "mistake" }, data, theme);
    const [a, b] = this.app.state.view.axes ?? [0, 1];
    const places = data.X.flatMap((row) => [row[a], row[b]]);
    const standing = Array.from(weights, (w) => (w > 0 ? 1 : 0));
    drawPoints(pen, frame, { view: { weights: { f32: pack(weights), shape: [] }, standing }, data, places, box: s.box, hover: this.app.hover, chosen: null, selected: new Set(), cursor: null, lines: [], from: null }, theme);
  }

  private drawWay(s: any): void {
    const theme = this.app.theme;
    const pen = new CanvasPen(this.way);
    const known = ["primal", "dual", "error"].filter((name) => s[name].some((v: number | null) => v !== null));
    const x = s.step.map((v: number) => Math.log10(v + 1));
    const [low, high] = extent(...known.map((name) => s[name].filter((v: number | null) => v !== null)));
    const frame = Frame.on(pen, [0, Math.max(x[x.length - 1], 0.1), low - 0.05 * (high - low), high + 0.05 * (high - low)]);
    frame.draw(pen, theme, [`log₁₀(${s.unit} + 1)`, ""], true);
    known.forEach((name, k) => {
      const places = s.step.map((_: number, i: number) => i).filter((i: number) => s[name][i] !== null);
      drawLine(pen, frame, places.map((i: number) => x[i]), places.map((i: number) => s[name][i]), css(classColour(k, theme)), 2, 1, k ? [6, 3] : []);
      const last = places[places.length - 1];
      pen.text(name, frame.x(x[last]) - 4, frame.y(s[name][last]) + (k ? 11 : -9), { fill: css(classColour(k, theme)), align: "right", bold: true });
    });
    pen.line([frame.x(x[this.at]), frame.top, frame.x(x[this.at]), frame.top + frame.h], { stroke: theme.accent, width: 1.5 });
  }
}

function pack(values: Float32Array): string {
  const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}
