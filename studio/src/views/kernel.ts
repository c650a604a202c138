// The kernel: why it is one, or the points that refute it; its profile, k(x0, ·), and functions of its prior.

import type { Studio } from "../app";
import { Frame, drawGrid, drawLine, extent, pixels, shaped } from "../axes";
import { fill, formula, h } from "../dom";
import { classColour, css, diverging, hex, marker, mix, viridis } from "../palette";
import { CanvasPen } from "../pen";
import { short, unpack } from "../wire";

export class KernelView {
  readonly element = h("div");
  private profile = h("canvas", { class: "ms-small", role: "img", "aria-label": "Profile of the kernel and functions drawn from its prior" });
  private heat = h("canvas", { class: "ms-small", role: "img", "aria-label": "k of one point with all places of the plane" });
  private picture = h("canvas", { class: "ms-small", role: "img", "aria-label": "Points of the witness" });
  private view: any = null;

  constructor(private app: Studio) {}

  show(view: any): void {
    this.view = view;
    const parts: (HTMLElement | null)[] = [h("p", { class: `ms-verdict ms-${view.status}` }, view.sentence)];
    if (view.proof) parts.push(h("h3", {}, "Proof"), proofTree(view.proof, true));
    if (view.assumptions?.length) parts.push(h("p", { class: "ms-hint" }, `Taken from you: ${view.assumptions.join("; ")}.`));
    if (view.witness) parts.push(...this.witness(view.witness));
    if (view.tried) parts.push(h("h3", {}, "Tried, without finding points at which it fails"), h("ul", {}, ...view.tried.map((t: string) => h("li", {}, t))));
    if (view.profile) {
      parts.push(h("h3", {}, view.profile.priors ? "Profile, with functions drawn from the prior" : "Profile"), this.profile);
      if (view.profile.heat) parts.push(h("h3", {}, "k(x₀, ·) in the plane"), this.heat, h("p", { class: "ms-hint" }, "x₀ is the chosen point, or the middle. Click a point in the picture to move it."));
    }
    fill(this.element, ...parts);
    this.draw();
  }

  private witness(w: any): HTMLElement[] {
    const out: HTMLElement[] = [h("h3", {}, "The points that refute it")];
    if (w.vectors) out.push(this.picture);
    const list = h("ul", { class: "ms-points" });
    w.points.forEach((x: any, i: number) => {
      const place = w.vectors ? `(${[].concat(x).map((v: number) => short(v, 5)).join(", ")})` : String(x);
      list.append(h("li", {}, `x${i + 1} = ${place}${w.asymmetric ? "" : `, q${i + 1} = ${short(w.q[i], 4)}`}`));
    });
    out.push(list);
    const body = w.gram.slice(0, 6).map((row: number[]) => row.slice(0, 6).map((v) => short(v, 3)).join(" & ")).join(" \\\\ ");
    out.push(w.asymmetric
      ? h("p", {}, `k(x1, x2) and k(x2, x1) differ by ${short(w.value, 4)}.`)
      : h("p", {}, formula(`K = \\begin{pmatrix} ${body} \\end{pmatrix},\\quad q^\\top K q = ${latexNumber(w.value)} < 0`)));
    out.push(h("p", { class: "ms-hint" }, w.checked ? "Checked in interval arithmetic: rounding does not decide it." : "Rounding could decide it."));
    return out;
  }

  draw(): void {
    const { view } = this;
    const theme = this.app.theme;
    if (view?.profile && this.profile.clientWidth) {
      const pen = new CanvasPen(this.profile);
      const r = unpack(view.profile.r), k = unpack(view.profile.k);
      const priors = view.profile.priors ? unpack(view.profile.priors) : new Float32Array(0);
      const [low, high] = extent(k, priors, [0]);
      const frame = Frame.on(pen, [r[0], r[r.length - 1], low, high + 0.06 * (high - low)]);
      frame.draw(pen, theme, [`distance along ${view.profile.axis}`, ""], true);
      for (let i = 0; i < priors.length; i += r.length) drawLine(pen, frame, r, priors.subarray(i, i + r.length), css(classColour(3, theme)), 1, 0.6);
      drawLine(pen, frame, r, k, css(classColour(0, theme)), 2.4);
    }
    if (view?.profile?.heat && this.heat.clientWidth) {
      shaped(this.heat, view.profile.box);
      const pen = new CanvasPen(this.heat);
      const f = unpack(view.profile.heat);
      const [low, high] = extent(f, [0]);
      const [rows, columns] = view.profile.heat.shape;
      const frame = Frame.on(pen, view.profile.box);
      drawGrid(pen, frame, pixels(columns, rows, (i) => mix(hex(theme.paper), viridis((f[i] - low) / (high - low)), 0.9)));
      frame.draw(pen, theme, null);
      const [x, y] = view.profile.from;
      marker(pen, 0, frame.x(x), frame.y(y), 5, theme.paper, theme.ink, 2);
    }
    if (view?.witness?.vectors && this.picture.clientWidth) this.drawWitness(view.witness);
  }

  private drawWitness(w: any): void {
    const theme = this.app.theme;
    const pen = new CanvasPen(this.picture);
    const at: [number, number][] = w.points.map((x: any) => { const v = [].concat(x) as number[]; return [v[0], v[1] ?? 0]; });
    const [l, r] = extent(at.map((p) => p[0])), [b, t] = extent(at.map((p) => p[1]));
    const frame = Frame.on(pen, [l - 0.15 * (r - l), r + 0.15 * (r - l), b - 0.15 * (t - b), t + 0.15 * (t - b)]);
    frame.draw(pen, theme, null, true);
    const most = Math.max(...w.q.map(Math.abs), 1e-12);
    at.forEach(([x, y], i) => {
      const share = w.asymmetric ? 1 : w.q[i] / most;
      const colour = css(diverging(share, classColour(0, theme), classColour(1, theme), hex(theme.paper)));
      marker(pen, share < 0 ? 0 : 1, frame.x(x), frame.y(y), 4 + 6 * Math.sqrt(Math.abs(share)), colour, theme.ink, 1);
      pen.text(`x${i + 1}`, frame.x(x) + 13, frame.y(y) - 9, { fill: theme.soft });
    });
  }
}

function latexNumber(value: number): string {
  return short(value, 4).replace(/e(-?)(\d+)/, "\\cdot 10^{$1$2}");
}

function proofTree(proof: any, open: boolean): HTMLElement {
  const inside = h("div", { class: "ms-step" }, h("p", {}, sentence(proof.reason)));
  if (proof.conditions.length) inside.append(h("p", {}, `Here ${proof.conditions.join("; ")}.`));
  for (const word of proof.taken) inside.append(h("p", {}, `Taken from you: ${word}.`));
  for (const premise of proof.premises) inside.append(proofTree(premise, false));
  return h("details", { class: "ms-proof", open }, h("summary", {}, h("code", {}, proof.kernel), h("span", { class: "ms-rule" }, proof.rule)), formula(`k(x,z) = ${proof.latex}`), inside);
}

function sentence(text: string): string {
  const first = /^[a-z]{2}/.test(text) ? text[0].toUpperCase() + text.slice(1) : text;
  return first.endsWith(".") ? first : `${first}.`;
}
