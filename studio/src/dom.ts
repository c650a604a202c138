// Elements by their name, attributes and children; text is always text, never markup.

import katex from "katex";

type Child = Node | string | null | undefined | false;
type Attributes = Record<string, string | number | boolean | null | undefined | ((event: any) => void)>;

export function h<K extends keyof HTMLElementTagNameMap>(name: K, attributes: Attributes = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") made.addEventListener(key.slice(2), value as EventListener);
    else made.setAttribute(key, value === true ? "" : String(value));
  }
  for (const child of children) if (child) made.append(child);
  return made;
}

export function fill(parent: Element, ...children: Child[]): void {
  parent.replaceChildren(...(children.filter(Boolean) as (Node | string)[]));
}

// A formula as MathML, which browsers set themselves: no fonts are shipped.
export function formula(latex: string): HTMLElement {
  const made = h("span", { class: "ms-formula" });
  const readable = latex.replaceAll("\\'e", "é");
  try {
    katex.render(readable, made, { output: "mathml", throwOnError: true, strict: "ignore", trust: false });
  } catch {
    made.textContent = latex;
  }
  return made;
}

export function field(label: string, control: HTMLElement): HTMLElement {
  return h("label", { class: "ms-field" }, h("span", {}, label), control);
}

export function choose(options: [string, string][], value: string, onchange: (value: string) => void, label: string): HTMLSelectElement {
  const made = h("select", { "aria-label": label, onchange: () => onchange(made.value) });
  for (const [key, words] of options) {
    const option = h("option", { value: key }, words);
    option.selected = key === value;
    made.append(option);
  }
  return made;
}

export interface SliderSpec {
  label: string; value: number; low: number; high: number; log: boolean; whole?: boolean; hint?: string;
  input(value: number): void;
  change(value: number): void;
}

const STEPS = 400;

// A slider, logarithmic where asked, with the value as a number that can be typed.
export function slider(spec: SliderSpec): HTMLElement {
  const sign = spec.value < 0 && spec.log ? -1 : 1;
  const toPlace = (v: number) =>
    spec.log
      ? (STEPS * Math.log(Math.abs(v) / spec.low)) / Math.log(spec.high / spec.low)
      : (STEPS * (v - spec.low)) / (spec.high - spec.low);
  const toValue = (p: number) => {
    const t = p / STEPS;
    const v = spec.log ? sign * spec.low * (spec.high / spec.low) ** t : spec.low + t * (spec.high - spec.low);
    return spec.whole ? Math.round(v) : Number(v.toPrecision(4));
  };
  const range = h("input", { type: "range", min: 0, max: STEPS, step: 1, "aria-label": `${spec.label}, slider` });
  const number = h("input", { type: "number", step: "any", "aria-label": spec.label, class: "ms-number" });
  range.value = String(toPlace(spec.value));
  number.value = String(Number(spec.value.toPrecision(6)));
  range.setAttribute("aria-valuetext", number.value);
  range.addEventListener("input", () => {
    const v = toValue(Number(range.value));
    number.value = String(v);
    range.setAttribute("aria-valuetext", String(v));
    spec.input(v);
  });
  range.addEventListener("change", () => spec.change(toValue(Number(range.value))));
  number.addEventListener("change", () => {
    const v = Number(number.value);
    if (number.value === "" || !Number.isFinite(v)) return;
    range.value = String(toPlace(v));
    spec.change(v);
  });
  return h("div", { class: "ms-slider" }, h("span", { class: "ms-slider-name", title: spec.hint }, spec.label), number, range);
}

export function download(name: string, content: BlobPart, type: string): void {
  const url = URL.createObjectURL(new Blob([content], { type }));
  const link = h("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
