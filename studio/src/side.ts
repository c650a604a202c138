// The right column: one view at a time, by tabs.

import type { Studio } from "./app";
import { fill, h } from "./dom";
import { CertificateView } from "./views/certificate";
import { ChoiceView } from "./views/choice";
import { CompareView } from "./views/compare";
import { DataView } from "./views/data";
import { GramView } from "./views/gram";
import { KernelView } from "./views/kernel";
import { SpaceView } from "./views/space";
import { WhyView } from "./views/why";

export interface SideView {
  readonly element: HTMLElement;
  show(view: any): void;
  draw(): void;
}

const TABS: [string, string][] = [
  ["kernel", "Kernel"], ["gram", "Gram"], ["space", "Feature space"], ["certificate", "Certificate"],
  ["choice", "Choice"], ["why", "Why"], ["compare", "Compare"], ["data", "Data"],
];

export class Side {
  readonly element: HTMLElement;
  private tabs = h("div", { class: "ms-tabs", role: "tablist", "aria-label": "Views" });
  private panel = h("div", { class: "ms-panel", role: "tabpanel", tabindex: 0 });
  private views: Record<string, SideView>;
  private last: Record<string, any> = {};

  constructor(private app: Studio) {
    this.views = {
      kernel: new KernelView(app), gram: new GramView(app), space: new SpaceView(app), certificate: new CertificateView(app),
      choice: new ChoiceView(app), why: new WhyView(app), compare: new CompareView(app), data: new DataView(app),
    };
    for (const [name, words] of TABS) {
      this.tabs.append(h("button", { type: "button", role: "tab", id: `ms-tab-${name}`, "data-view": name, onclick: () => this.open(name) }, words));
    }
    this.tabs.addEventListener("keydown", (event) => this.key(event as KeyboardEvent));
    this.element = h("section", { class: "ms-side", "aria-label": "Views" }, this.tabs, this.panel);
    this.mark();
  }

  private get tab(): string { return this.views[this.app.state.tab] ? this.app.state.tab : "kernel"; }
  get asks(): string[] { return this.tab === "data" ? [] : [this.tab]; }
  get why(): any { return this.tab === "why" && this.last.why && !this.last.why.problem ? this.last.why : null; }

  open(name: string): void {
    this.app.state.tab = name;
    this.mark();
    this.app.ask();
  }

  private key(event: KeyboardEvent): void {
    const way = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!way) return;
    event.preventDefault();
    const names = TABS.map(([name]) => name);
    const next = names[(names.indexOf(this.tab) + way + names.length) % names.length];
    this.open(next);
    (this.tabs.querySelector(`[data-view=${next}]`) as HTMLElement).focus();
  }

  private mark(): void {
    for (const button of this.tabs.querySelectorAll("button")) {
      const on = button.dataset.view === this.tab;
      button.setAttribute("aria-selected", String(on));
      button.tabIndex = on ? 0 : -1;
    }
    this.panel.dataset.view = this.tab;
    this.panel.setAttribute("aria-labelledby", `ms-tab-${this.tab}`);
    if (this.panel.firstElementChild !== this.views[this.tab].element) {
      fill(this.panel, this.views[this.tab].element);
      this.panel.scrollTop = 0;
    }
    if (this.tab === "data") this.views.data.show(null);
  }

  wait(): void { this.panel.classList.add("ms-busy"); }

  show(name: string, view: any): void {
    if (!this.views[name]) return;
    this.last[name] = view;
    if (name !== this.tab) return;
    this.panel.classList.remove("ms-busy");
    this.mark();
    if (view?.problem) fill(this.panel, h("p", { class: "ms-quiet", role: "status" }, view.problem));
    else if (view) this.views[name].show(view);
    this.panel.dataset.shown = view?.problem ? "problem" : name;
    if (name === "why") this.app.main.draw();
  }

  redraw(): void {
    if (this.panel.firstElementChild === this.views[this.tab].element) this.views[this.tab].draw();
    if (this.tab === "data") this.views.data.show(null);
  }
}
