// The page as a whole: what is known, what is asked, and who is told.

import { Asker } from "./asker";
import { Controls } from "./controls";
import { fill, h } from "./dom";
import { header } from "./header";
import { MainView } from "./main_view";
import { DARK_THEME, LIGHT_THEME, type Theme } from "./palette";
import { Side } from "./side";
import { Store, fromAddress, sent, toAddress } from "./store";
import type { Answer, Choice, Data, Hello, State, Transport } from "./wire";

export const COARSE = { columns: 48, rows: 36, curve: 120 };
export const FINE = { columns: 128, rows: 96, curve: 400 };

export interface Studio {
  readonly root: HTMLElement;
  readonly hello: Hello;
  readonly store: Store;
  readonly asker: Asker;
  readonly state: State;
  answer: Answer | null;
  theme: Theme;
  hover: number | null;
  selected: Set<number>;
  table: any;
  change(edit: (state: State) => void, quick?: boolean): void;
  ask(quick?: boolean): void;
  askMove(row: number, place: number[]): void;
  light(row: number | null): void;
  say(words: string): void;
  redraw(): void;
  usePreset(name: string): void;
  useData(data: Data): void;
  undo(): void;
  redo(): void;
  main: MainView;
  side: Side;
}

export async function open(root: HTMLElement, transport: Transport, isPage: boolean): Promise<Studio> {
  root.classList.add("mercer-studio");
  fill(root, h("p", { class: "ms-waiting" }, "Loading…"));
  const lost = () => root.append(h("div", { class: "ms-lost", role: "alert" }, "The studio has stopped. Start it again with `mercer studio`, and open its new address."));
  const asker = new Asker(transport, lost);
  const hello = await asker.hello();
  const page = new Page(root, asker, hello, isPage);
  await page.begin();
  return page;
}

function usual(hello: Hello, name: string): Choice {
  const preset = hello.presets[name];
  return { machine: preset.machine, settings: { ...preset.settings }, kernel: preset.kernel, moved: {}, approximation: "none", rank: 20 };
}

const NOTHING: Data = { preset: "moons", kind: "vectors", task: "classes", columns: ["x1", "x2"], target: "class", labels: ["0", "1"], X: [], y: [], notes: [] };

class Page implements Studio {
  readonly store: Store;
  answer: Answer | null = null;
  theme: Theme = LIGHT_THEME;
  hover: number | null = null;
  selected = new Set<number>();
  table: any = null;
  main!: MainView;
  side!: Side;
  private controls!: Controls;
  private head!: { element: HTMLElement; show(): void };
  private live = h("div", { class: "ms-live", "aria-live": "polite" });
  private note = h("div", { class: "ms-toast", role: "status" });
  private before: State | null = null;
  private timer = 0;
  private noteTimer = 0;

  constructor(readonly root: HTMLElement, readonly asker: Asker, readonly hello: Hello, private isPage: boolean) {
    this.table = hello.table;
    const state: State = { data: { ...NOTHING }, first: usual(hello, "moons"), second: null, view: {}, tab: "kernel" };
    this.store = new Store(state);
    if (hello.points) this.take(hello.points);
  }

  get state(): State { return this.store.state; }

  async begin(): Promise<void> {
    const kept = this.isPage ? await fromAddress(location.hash) : null;
    if (kept) Object.assign(this.store.state, { ...kept, data: { ...NOTHING, ...kept.data } });
    this.watchTheme();
    this.main = new MainView(this);
    this.side = new Side(this);
    this.controls = new Controls(this);
    this.head = header(this);
    fill(
      this.root,
      this.head.element,
      h("div", { class: "ms-body" }, this.controls.element, this.main.element, this.side.element),
      this.live,
      this.note,
    );
    // a page has the keyboard to itself, a widget only what is typed inside it
    const place: HTMLElement = this.isPage ? document.documentElement : this.root;
    place.addEventListener("keydown", (event) => this.key(event));
    const seen = new ResizeObserver(() => this.redraw());
    seen.observe(this.root);
    seen.observe(this.main.canvas);
    window.addEventListener("hashchange", () => this.isPage && void this.followAddress());
    this.ask();
  }

  private async followAddress(): Promise<void> {
    const kept = await fromAddress(location.hash);
    if (!kept || location.hash === this.written) return;
    this.store.keep(this.state);
    this.store.state = { ...this.state, ...kept, data: { ...NOTHING, ...kept.data } as Data };
    this.ask();
  }

  private watchTheme(): void {
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const follow = () => {
      const wish = this.root.dataset.theme;
      this.theme = wish === "dark" || (wish !== "light" && dark.matches) ? DARK_THEME : LIGHT_THEME;
      this.root.classList.toggle("ms-dark", this.theme.dark);
      if (this.main) this.redraw();
    };
    dark.addEventListener("change", follow);
    new MutationObserver(follow).observe(this.root, { attributes: true, attributeFilter: ["data-theme"] });
    follow();
  }

  // ── changes ──────────────────────────────────────────────────────────────────────────────────────────────

  // `quick` while a hand is still moving: one step back undoes the whole movement.
  change(edit: (state: State) => void, quick = false): void {
    const before = this.before ?? (JSON.parse(JSON.stringify(this.state)) as State);
    edit(this.store.state);
    if (quick) this.before = before;
    else {
      this.before = null;
      this.store.keep(before);
    }
    this.ask(quick);
  }

  ask(quick = false): void {
    const side = this.side?.asks ?? [];
    const wanted = ["main", ...side.filter((name) => !SLOW.has(name))];
    const mark = performance.now();
    this.asker.quick.ask(
      { state: sent(this.state), want: wanted, detail: { ...(quick ? COARSE : FINE), aspect: this.main?.aspect() } },
      (answer) => this.hear(answer, quick),
      mark,
    );
    if (!quick) this.look();
  }

  // Views that take longer are asked apart, and not while a hand is moving.
  private look(): void {
    const slow = (this.side?.asks ?? []).filter((name) => SLOW.has(name));
    if (!slow.length) return;
    this.side.wait();
    this.asker.slow.ask({ look: sent(this.state), want: slow, detail: FINE }, (answer) => {
      for (const name of slow) this.side.show(name, answer.views?.[name] ?? { problem: answer.problem?.sentence });
    });
  }

  askMove(row: number, place: number[]): void {
    this.asker.quick.ask({ move: [row, place], want: ["main"], detail: COARSE }, (answer) => this.hear(answer, true));
  }

  private hear(answer: Answer, quick: boolean): void {
    const kept = this.answer;
    this.answer = { ...answer, views: answer.views ?? {}, kernel: answer.kernel ?? null };
    if (answer.data && this.state.data.preset) {
      this.state.data = answer.data;
      this.selected.clear();
    }
    if (answer.problem) this.answer.kernel = this.answer.kernel ?? kept?.kernel ?? null;
    const settled = !quick && answer.kernel && Object.keys(this.state.first.moved).length;
    if (settled) this.state.first = { ...this.state.first, kernel: answer.kernel!.text, moved: {} };
    if (this.state.view.box === undefined && answer.box && !answer.problem) this.state.view.box = null;
    this.main.show(this.answer, quick);
    for (const [name, view] of Object.entries(this.answer.views)) if (name !== "main") this.side.show(name, view);
    if (!quick) {
      this.controls.show();
      this.head.show();
      this.remember();
    } else this.controls.follow();
  }

  private written = "";

  private remember(): void {
    if (!this.isPage) return;
    clearTimeout(this.timer);
    this.timer = window.setTimeout(async () => {
      const address = await toAddress(this.state);
      this.root.dataset.shared = address ? "yes" : "no";
      this.written = address ?? "";
      history.replaceState(null, "", address ?? location.pathname);
    }, 150);
  }

  undo(): void { this.step(this.store.undo(), "Undone."); }
  redo(): void { this.step(this.store.redo(), "Done again."); }

  private step(done: boolean, words: string): void {
    if (!done) return this.say("There is nothing more.");
    this.selected.clear();
    this.say(words);
    this.ask();
  }

  usePreset(name: string): void {
    this.change((state) => {
      state.data = { ...NOTHING, preset: name };
      state.first = usual(this.hello, name);
      state.second = null;
      state.view = name === "digits" ? { plane: "components" } : {};
    });
    this.selected.clear();
  }

  useData(data: Data): void {
    this.change(() => this.take(data));
    this.selected.clear();
  }

  private take(data: Data): void {
    const state = this.store.state;
    state.data = data;
    // many columns are first seen as a whole
    state.view = data.columns.length > 3 ? { plane: "components" } : {};
    state.second = null;
    const fits = this.hello.machines.find((m) => m.name === state.first.machine)?.task === data.task;
    const wide = data.kind === "vectors";
    const machine = fits ? state.first.machine : data.task === "classes" ? "SVC" : "GaussianProcessRegressor";
    state.first = { ...state.first, machine, settings: {}, moved: {}, kernel: wide ? "RBF()" : state.first.kernel };
  }

  // ── who is told ──────────────────────────────────────────────────────────────────────────────────────────

  light(row: number | null): void {
    if (row === this.hover) return;
    this.hover = row;
    this.main.draw();
    this.side.redraw();
  }

  say(words: string): void {
    this.live.textContent = words;
    this.note.textContent = words;
    this.note.classList.add("ms-shown");
    clearTimeout(this.noteTimer);
    this.noteTimer = window.setTimeout(() => this.note.classList.remove("ms-shown"), 2500);
  }

  redraw(): void {
    this.main.draw();
    this.side.redraw();
  }

  private key(event: KeyboardEvent): void {
    const typing = (event.target as Element).matches("input:not([type=range]), textarea, select");
    if ((event.ctrlKey || event.metaKey) && !typing && event.key.toLowerCase() === "z") {
      event.preventDefault();
      if (event.shiftKey) this.redo();
      else this.undo();
    } else if ((event.ctrlKey || event.metaKey) && !typing && event.key.toLowerCase() === "y") {
      event.preventDefault();
      this.redo();
    } else if (!typing && !event.ctrlKey && !event.metaKey && /^[1-9]$/.test(event.key)) {
      this.main.useClass(Number(event.key) - 1);
    }
  }
}

const SLOW = new Set(["gram", "space", "certificate", "choice", "compare"]);
