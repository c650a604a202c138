// Two ways to Python: a WebSocket for the page, the comm of a notebook for the widget.

import type { Transport } from "./wire";

export function webSocket(): Transport {
  const address = new URL("ws", location.href);
  address.protocol = "ws:";
  address.hash = "";
  const socket = new WebSocket(address);
  const waiting: string[] = [];
  socket.onopen = () => {
    for (const text of waiting) socket.send(text);
    waiting.length = 0;
  };
  return {
    send(message) {
      const text = JSON.stringify(message);
      if (socket.readyState === WebSocket.CONNECTING) waiting.push(text);
      else if (socket.readyState === WebSocket.OPEN) socket.send(text);
    },
    listen(heard, lost) {
      socket.onmessage = (event) => heard(JSON.parse(event.data));
      socket.onclose = () => lost();
    },
  };
}

export interface WidgetModel {
  send(content: object): void;
  on(event: string, call: (message: any) => void): void;
}

export function comm(model: WidgetModel): Transport {
  return {
    send: (message) => model.send(message),
    listen: (heard) => model.on("msg:custom", heard),
  };
}
