// Data: drop a file, choose what its columns are, see the first rows.

import type { Studio } from "../app";
import { fill, h } from "../dom";
import { short } from "../wire";

const ROWS = 12;

export class DataView {
  readonly element = h("div");
  private shown: unknown = null;

  constructor(private app: Studio) {
    this.element.addEventListener("dragover", (event) => event.preventDefault());
    this.element.addEventListener("drop", (event) => {
      event.preventDefault();
      const file = event.dataTransfer?.files[0];
      if (file) void this.read(file);
    });
  }

  private async read(file: File): Promise<void> {
    const limit = this.app.hello.limits.bytes;
    if (file.size > limit) return this.refuse(`${file.name} has ${short(file.size / 1e6)} MB, and the page takes at most ${limit / 1e6} MB. Use fewer rows, or mercer fit on the whole file.`);
    const bytes = new Uint8Array(await file.arrayBuffer());
    let text = "";
    for (let i = 0; i < bytes.length; i += 32768) text += String.fromCharCode(...bytes.subarray(i, i + 32768));
    this.take(await this.app.asker.call({ table: { name: file.name, base64: btoa(text) } }));
  }

  private take(answer: any): void {
    if (answer.problem) return this.refuse(answer.problem.sentence);
    this.app.table = answer.table;
    this.shown = null;
    this.app.useData(answer.points);
    this.app.say(`${answer.points.X.length} rows.`);
  }

  private refuse(sentence: string): void {
    this.shown = null;
    this.show(null, sentence);
  }

  show(_: any, wrong = ""): void {
    const { data } = this.app.state;
    if (this.shown === data && !wrong) return;
    this.shown = data;
    const input = h("input", { type: "file", accept: ".csv,.tsv,.txt,.parquet,.arrow,.jsonl,.gz,.zst", "aria-label": "A table from this machine" });
    input.addEventListener("change", () => { if (input.files?.[0]) void this.read(input.files[0]); });
    fill(
      this.element,
      h("div", { class: "ms-drop" }, h("p", {}, "Drop a CSV, TSV, Parquet or JSON-lines file here, or choose one."), input),
      wrong ? h("p", { class: "ms-wrong", role: "alert" }, wrong) : null,
      this.app.table && !data.preset ? this.roles() : null,
      data.notes.length ? h("ul", { class: "ms-notes" }, ...data.notes.map((n) => h("li", {}, n))) : null,
      h("h3", {}, `${data.y.length} rows`),
      this.table(),
    );
  }

  private roles(): HTMLElement {
    const { table, state } = this.app;
    const rows = table.columns.map((c: any) => {
      const now = c.name === state.data.target ? "target" : state.data.columns.includes(c.name) ? "input" : "left out";
      const pick = h("select", { "aria-label": `Role of ${c.name}`, "data-column": c.name });
      for (const role of ["input", "target", "left out"]) {
        if (role === "input" && !c.numeric) continue;
        if (role === "target" && !c.numeric && !c.classes) continue;
        const option = h("option", { value: role }, role);
        option.selected = role === now;
        pick.append(option);
      }
      pick.addEventListener("change", () => void this.assign(c.name, pick.value));
      const gaps = c.gaps ? `, ${c.gaps} missing` : "";
      return h("tr", {}, h("th", {}, c.name), h("td", {}, pick), h("td", { class: "ms-hint" }, `${c.kind}: ${c.why}${gaps}`));
    });
    return h("div", {}, h("h3", {}, `Columns of ${table.name}`), h("div", { class: "ms-scroll" }, h("table", { class: "ms-facts" }, h("tbody", {}, ...rows))));
  }

  private async assign(name: string, role: string): Promise<void> {
    const { data } = this.app.state;
    let target = data.target;
    let inputs = data.columns.filter((c) => c !== name);
    if (role === "target") {
      if (this.app.table.columns.find((c: any) => c.name === target)?.numeric) inputs.push(target);
      target = name;
    } else if (role === "input") inputs.push(name);
    inputs = this.app.table.columns.map((c: any) => c.name).filter((c: string) => inputs.includes(c) && c !== target);
    this.take(await this.app.asker.call({ roles: { target, inputs } }));
  }

  private table(): HTMLElement {
    const { data } = this.app.state;
    const columns = data.kind === "vectors" ? data.columns.slice(0, 8) : [data.kind.replace(/s$/, "")];
    const head = h("tr", {}, h("th", {}, "#"), ...columns.map((c) => h("th", {}, c)), data.columns.length > 8 ? h("th", {}, "…") : null, h("th", {}, data.target));
    const body = data.y.slice(0, ROWS).map((y, i) => {
      const x = data.X[i];
      const cells = data.kind === "vectors" ? x.slice(0, 8).map((v: number) => short(v, 4)) : [data.kind === "graphs" ? `${x.nodes} nodes, ${x.edges.length} edges` : String(x)];
      const label = data.task === "classes" ? data.labels[y] : short(y, 5);
      return h("tr", { onpointerenter: () => this.app.light(i), onpointerleave: () => this.app.light(null) }, h("td", {}, String(i + 1)), ...cells.map((c: string) => h("td", {}, c)), data.columns.length > 8 ? h("td", {}, "…") : null, h("td", {}, label));
    });
    return h("div", { class: "ms-scroll" }, h("table", { class: "ms-table" }, h("thead", {}, head), h("tbody", {}, ...body)));
  }

  draw(): void { this.show(null); }
}
