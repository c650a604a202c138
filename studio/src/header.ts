// The head of the page: the verdict on the kernel, undo, and what can be taken away.

import type { Studio } from "./app";
import { download, fill, h } from "./dom";
import { sent, toAddress } from "./store";

const VERDICTS: Record<string, [string, string]> = {
  proved: ["✓", "proved to be a kernel"],
  declared: ["✓", "a kernel, as declared"],
  refuted: ["✗", "no kernel: a witness refutes it"],
  undecided: ["?", "not decided"],
};

export function header(app: Studio): { element: HTMLElement; show(): void } {
  const badge = h("button", { class: "ms-badge", type: "button", title: "Show the proof", onclick: () => app.side.open("kernel") });
  const undo = h("button", { type: "button", title: "Undo (Ctrl+Z)", "aria-label": "Undo", class: "ms-icon", onclick: () => app.undo() }, "↶");
  const redo = h("button", { type: "button", title: "Redo (Ctrl+Y)", "aria-label": "Redo", class: "ms-icon", onclick: () => app.redo() }, "↷");
  const theme = h("button", { type: "button", title: "Light or dark", "aria-label": "Light or dark", class: "ms-icon", onclick: () => (app.root.dataset.theme = app.theme.dark ? "light" : "dark") }, "◐");
  const link = h("button", { type: "button", onclick: () => void copyLink(app) }, "Copy link");
  const element = h(
    "header",
    { class: "ms-head" },
    h("h1", {}, "mercer", h("span", {}, "studio")),
    badge,
    h("div", { class: "ms-space" }),
    h("div", { class: "ms-buttons" }, undo, redo, link, takeAway(app), theme),
  );
  const show = () => {
    const status = app.answer?.kernel?.status ?? "undecided";
    const [sign, words] = VERDICTS[status] ?? VERDICTS.undecided;
    badge.className = `ms-badge ms-${status}`;
    fill(badge, h("b", { "aria-hidden": "true" }, sign), h("span", {}, words));
    undo.disabled = !app.store.canUndo;
    redo.disabled = !app.store.canRedo;
  };
  show();
  return { element, show };
}

async function copyLink(app: Studio): Promise<void> {
  const address = await toAddress(app.state);
  if (!address) return app.say("The data are too large for a link. Download them instead.");
  history.replaceState(null, "", address);
  await copy(app, location.href, "Link copied. It holds the whole state, and works while this studio runs.");
}

async function copy(app: Studio, text: string, words: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    app.say(words);
  } catch {
    show(app, text);
  }
}

function show(app: Studio, text: string): void {
  const box = h("dialog", { class: "ms-dialog" }, h("textarea", { rows: 16, readonly: true, "aria-label": "Text to copy" }, text));
  box.append(h("button", { type: "button", onclick: () => box.remove() }, "Close"));
  app.root.append(box);
  box.showModal();
}

function takeAway(app: Studio): HTMLElement {
  const items: [string, string, () => void][] = [
    ["Copy Python", "python", () => void take(app, "python")],
    ["Copy command", "command", () => void take(app, "command")],
    ["Download model", "model", () => void take(app, "model")],
    ["Download picture (SVG)", "svg", () => download("picture.svg", app.main.svg(), "image/svg+xml")],
    ["Download picture (PNG)", "png", () => void png(app)],
    ["Download report", "report", () => void take(app, "report")],
    ["Download data (CSV)", "data", () => void take(app, "data")],
  ];
  const menu = h("details", { class: "ms-menu" }, h("summary", {}, "Take away"));
  const list = h("div", { class: "ms-list" });
  for (const [words, name, act] of items) {
    list.append(h("button", { type: "button", "data-take": name, onclick: () => { menu.open = false; act(); } }, words));
  }
  menu.append(list);
  menu.addEventListener("keydown", (event) => { if ((event as KeyboardEvent).key === "Escape") menu.open = false; });
  menu.addEventListener("focusout", (event) => { if (!menu.contains((event as FocusEvent).relatedTarget as Node)) menu.open = false; });
  return menu;
}

async function take(app: Studio, what: string): Promise<void> {
  const answer = await app.asker.call({ take: what, state: sent(app.state) });
  if (answer.problem) return app.say(answer.problem.sentence);
  if (answer.base64) {
    download(answer.name, Uint8Array.from(atob(answer.base64), (c) => c.charCodeAt(0)), "application/octet-stream");
  } else if (what === "python" || what === "command") {
    await copy(app, answer.text, what === "python" ? "Python copied: it gives the same numbers." : "Command copied. It reads points.csv: download the data too.");
  } else download(answer.name, answer.text, what === "report" ? "text/html" : "text/csv");
}

async function png(app: Studio): Promise<void> {
  const blob = await new Promise<Blob | null>((done) => app.main.canvas.toBlob(done, "image/png"));
  if (blob) download("picture.png", blob, "image/png");
}
