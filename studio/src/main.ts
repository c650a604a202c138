// The one entry: a page where its root is there, and a widget for notebooks (anywidget calls `render`).

import "./style.css";
import { type Studio, open } from "./app";
import { latencies } from "./asker";
import { type WidgetModel, comm, webSocket } from "./transport";

declare global {
  interface Window { mercerStudio?: { app: Studio; latencies: typeof latencies } }
}

const root = document.getElementById("mercer-studio");
if (root && document.body.classList.contains("mercer-page")) {
  void open(root, webSocket(), true).then((app) => (window.mercerStudio = { app, latencies }));
}

function render({ model, el }: { model: WidgetModel; el: HTMLElement }): void {
  el.classList.add("mercer-widget");
  void open(el, comm(model), false);
}

export default { render };
