// The left column: data, machine, kernel, and a slider for each of their numbers.

import type { Studio } from "./app";
import { choose, field, fill, formula, h, slider } from "./dom";
import type { Choice } from "./wire";

const LEAVES = [
  "RBF(1.0)", "Matern(1.0, nu=1.5)", "RationalQuadratic(1.0)", "Periodic(1.0)", "Linear()", "Polynomial(2)", "Constant(1.0)",
  "Laplacian(1.0)", "Brownian()", "Sigmoid(1.0)",
];

export class Controls {
  readonly element = h("section", { class: "ms-controls", "aria-label": "Data, machine and kernel" });
  private text = h("textarea", { class: "ms-kernel", rows: 2, spellcheck: "false", "aria-label": "Kernel", autocapitalize: "off" });
  private wrong = h("p", { class: "ms-wrong", role: "alert" });
  private latex = h("div", { class: "ms-latex" });
  private numbers = h("div", { class: "ms-sliders" });
  private machine = h("div", { class: "ms-group" });
  private data = h("div", { class: "ms-group" });
  private held = h("div", { class: "ms-group ms-held" });
  private timer = 0;
  private shape = "";
  private followed = "";

  constructor(private app: Studio) {
    this.text.addEventListener("input", () => {
      clearTimeout(this.timer);
      this.timer = window.setTimeout(() => this.typed(this.text.value), 300);
    });
    const leaf = choose(LEAVES.map((l) => [l, l]), LEAVES[0], () => undefined, "A kernel to combine with");
    const join = (sign: string) => () => {
      const now = this.text.value.trim();
      const part = sign === "*" && /[+-]/.test(now.replace(/\([^()]*\)/g, "")) ? `(${now})` : now;
      this.typed(sign ? `${part} ${sign} ${leaf.value}` : leaf.value);
    };
    const kernel = h(
      "div",
      { class: "ms-group" },
      h("h2", {}, "Kernel"),
      this.text,
      this.wrong,
      this.latex,
      h(
        "div",
        { class: "ms-row ms-join" },
        leaf,
        h("button", { type: "button", title: "Add this kernel", onclick: join("+") }, "+ add"),
        h("button", { type: "button", title: "Multiply by this kernel", onclick: join("*") }, "× times"),
        h("button", { type: "button", title: "Use this kernel alone", onclick: join("") }, "use"),
      ),
      this.numbers,
    );
    fill(this.element, this.data, this.machine, kernel, this.held);
  }

  private typed(text: string): void {
    this.app.change((state) => (state.first = { ...state.first, kernel: text, moved: {} }));
  }

  show(): void {
    const { state, answer } = this.app;
    this.followed = answer?.kernel?.text ?? "";
    if (this.app.root.ownerDocument.activeElement !== this.text) this.text.value = state.first.kernel;
    const problem = answer?.problem;
    const wrong = problem?.where === "kernel" ? problem.sentence : "";
    this.text.setAttribute("aria-invalid", wrong ? "true" : "false");
    const caret = problem?.column && problem.column <= state.first.kernel.length + 1 ? ` (at sign ${problem.column})` : "";
    this.wrong.textContent = wrong ? wrong.replace(/ at column \d+$/, "") + caret : "";
    if (answer?.kernel && !wrong) fill(this.latex, formula(`k(x,z) = ${answer.kernel.latex}`));
    this.showData();
    this.showMachine();
    this.showSliders();
  }

  // While a slider is held only the text follows; the sliders themselves stay under the hand.
  follow(): void {
    const kernel = this.app.answer?.kernel;
    if (kernel?.text === this.followed) return;
    this.followed = kernel?.text ?? "";
    if (kernel && this.app.root.ownerDocument.activeElement !== this.text) this.text.value = kernel.text;
    if (kernel) fill(this.latex, formula(`k(x,z) = ${kernel.latex}`));
  }

  private showData(): void {
    const { state, hello } = this.app;
    const options: [string, string][] = Object.entries(hello.presets).map(([key, preset]) => [key, preset.title]);
    if (!state.data.preset) options.unshift(["", "your own points"]);
    const count = state.data.X.length;
    fill(
      this.data,
      h("h2", {}, "Data"),
      choose(options, state.data.preset, (name) => name && this.app.usePreset(name), "Preset"),
      h("p", { class: "ms-hint" }, `${count} ${state.data.kind === "vectors" ? "points" : state.data.kind}, ${
        state.data.task === "classes" ? `${state.data.labels.length} classes` : `target ${state.data.target}`
      }`),
    );
  }

  private showMachine(): void {
    const { state } = this.app;
    this.showHeld();
    fill(this.machine, h("h2", {}, "Machine"), machineControls(this.app, state.first, (edit, quick) =>
      this.app.change((s) => (s.first = edit(s.first)), quick)));
  }

  // A slice through wider data: the columns that are not drawn are held where their sliders stand.
  private showHeld(): void {
    const { data, view } = this.app.state;
    const columns = data.kind === "vectors" ? data.columns.length : 0;
    if (columns < 3 || (view.plane ?? "slice") !== "slice" || !data.X.length) return fill(this.held);
    const axes = view.axes ?? [0, 1];
    const middle = data.columns.map((_, c) => data.X.reduce((sum, row) => sum + row[c], 0) / data.X.length);
    const held = view.held?.length === columns ? view.held : middle;
    const sliders = data.columns.map((name, c) => {
      const values = data.X.map((row) => row[c] as number);
      const [low, high] = [Math.min(...values), Math.max(...values)];
      if (axes.includes(c) || low === high) return null;
      const set = (v: number, quick: boolean) => this.app.change((s) => {
        const next = held.slice();
        next[c] = v;
        s.view = { ...s.view, held: next };
      }, quick);
      return slider({ label: name, value: held[c], low, high, log: false, input: (v) => set(v, true), change: (v) => set(v, false) });
    });
    fill(this.held, h("h2", {}, "Held on this slice"), ...sliders.filter(Boolean).slice(0, 12));
  }

  private showSliders(): void {
    const sliders = this.app.answer?.kernel?.sliders ?? [];
    const shape = JSON.stringify(sliders);
    const held = this.numbers.contains(this.app.root.ownerDocument.activeElement);
    if (shape === this.shape) return;
    this.shape = shape;
    const at = held ? [...this.numbers.querySelectorAll("input")].indexOf(this.app.root.ownerDocument.activeElement as HTMLInputElement) : -1;
    fill(
      this.numbers,
      ...sliders.map((info) =>
        slider({
          label: readable(info.name),
          hint: info.name,
          ...info,
          input: (v) => this.app.change((s) => (s.first = { ...s.first, moved: { ...s.first.moved, [info.place]: v } }), true),
          change: (v) => this.app.change((s) => (s.first = { ...s.first, moved: { ...s.first.moved, [info.place]: v } })),
        }),
      ),
    );
    if (at >= 0) this.numbers.querySelectorAll("input")[at]?.focus();
  }
}

// k1__k2__lengthscale is the lengthscale of the second factor of the first term.
export function readable(name: string): string {
  const parts = name.split("__");
  const last = parts.pop()!;
  const place = parts.filter((p) => /^k\d+$/.test(p)).map((p) => p.slice(1)).join(".");
  return place ? `${last} of part ${place}` : last;
}

type Edit = (choice: Choice) => Choice;

// Also for the second machine, of the view that compares.
export function machineControls(app: Studio, choice: Choice, change: (edit: Edit, quick?: boolean) => void): HTMLElement {
  const { hello, state } = app;
  const fits = hello.machines.filter((m) => m.task === state.data.task);
  const offer = hello.machines.find((m) => m.name === choice.machine) ?? fits[0];
  const out = h("div", { class: "ms-machine" });
  out.append(
    choose(fits.map((m) => [m.name, `${m.name} · ${m.words}`]), choice.machine, (name) =>
      change((c) => ({ ...c, machine: name, settings: {} })), "Machine"),
  );
  for (const s of offer.sliders) {
    const set = (v: number, quick: boolean) => {
      const value = Math.min(Math.max(v, s.low), s.high);
      change((c) => ({ ...c, settings: { ...c.settings, [s.name]: value } }), quick);
    };
    out.append(
      slider({
        label: s.name, hint: s.words, value: choice.settings[s.name] ?? s.default, low: s.low, high: s.high,
        log: s.low > 0, whole: s.whole, input: (v) => set(v, true), change: (v) => set(v, false),
      }),
    );
  }
  if (offer.approximates) {
    const kinds = choose([["none", "exact kernel"], ["Nystroem", "Nyström landmarks"], ["RandomFeatures", "random features"]], choice.approximation, (kind) =>
      change((c) => ({ ...c, approximation: kind })), "Approximation");
    const row = h("div", { class: "ms-row" }, field("features", kinds));
    if (choice.approximation !== "none") {
      const rank = h("input", { type: "number", min: 1, max: 500, value: choice.rank, "aria-label": "Number of features", class: "ms-number" });
      rank.addEventListener("change", () => change((c) => ({ ...c, rank: Math.min(Math.max(Math.round(Number(rank.value)) || 20, 1), 500) })));
      row.append(rank);
    }
    out.append(row);
  }
  return out;
}
