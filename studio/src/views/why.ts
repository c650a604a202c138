// Why this answer: f(x) = Σ c_i k(x_i, x) + b, the largest terms as bars, each leading to its point.

import type { Studio } from "../app";
import { fill, formula, h } from "../dom";
import { classColour, css } from "../palette";
import { short } from "../wire";

export class WhyView {
  readonly element = h("div");
  private view: any = null;

  constructor(private app: Studio) {}

  show(view: any): void {
    this.view = view;
    const of = view.of.row !== undefined ? this.app.main.describe(view.of.row) : `Place (${view.of.at.map((v: number) => short(v)).join(", ")})`;
    const most = Math.max(...view.terms.map((t: any) => Math.abs(t.value)), 1e-12);
    const list = h("ol", { class: "ms-terms" });
    for (const t of view.terms) list.append(this.bar(t, most));
    const plain = (v: number) => short(v, 4).replace(/e(-?)(\d+)/, "\\cdot 10^{$1$2}");
    const sum = `f(x) = \\sum_i c_i\\,k(x_i, x) + b = ${plain(view.total - view.offset)} ${view.offset < 0 ? "-" : "+"} ${plain(Math.abs(view.offset))} = ${plain(view.total)}`;
    fill(
      this.element,
      h("p", {}, of),
      view.function === "f" ? null : h("p", { class: "ms-hint" }, `The function that decides: ${view.function}.`),
      formula(sum),
      h("h3", {}, "The largest terms"),
      list,
      h("p", { class: "ms-hint" }, `${view.used} rows take part; all others together: ${short(view.rest, 3)}. Choose another point in the picture.`),
    );
    this.draw();
  }

  private bar(t: any, most: number): HTMLElement {
    const data = this.app.state.data;
    const theme = this.app.theme;
    const colour = data.task === "classes" ? css(classColour(data.y[t.row], theme)) : theme.accent;
    const name = data.kind === "strings" ? String(data.X[t.row]).slice(0, 14) : `row ${t.row + 1}`;
    const bar = h("span", { class: "ms-term-bar" });
    const inner = h("span");
    const share = (50 * Math.abs(t.value)) / most;
    inner.style.cssText = `width:${share}%;background:${colour};left:${t.value < 0 ? 50 - share : 50}%`;
    bar.append(inner);
    return h(
      "li",
      { "data-row": t.row, onpointerenter: () => this.app.light(t.row), onpointerleave: () => this.app.light(null) },
      h("button", { type: "button", class: "ms-link", onclick: () => this.app.change((s) => (s.view = { ...s.view, chosen: t.row })) }, name),
      bar,
      h("span", { class: "ms-term-value", title: `${short(t.coefficient, 4)} × ${short(t.k, 4)}` }, short(t.value, 3)),
    );
  }

  draw(): void {
    for (const item of this.element.querySelectorAll<HTMLElement>("li[data-row]")) {
      item.classList.toggle("ms-lit", Number(item.dataset.row) === this.app.hover);
    }
    void this.view;
  }
}
