// The state of the page, its past, and its form in the address.

import type { Choice, Data, State, View } from "./wire";

const LONGEST = 60_000;

export class Store {
  private past: string[] = [];
  private future: string[] = [];

  constructor(public state: State) {}

  // Keep what was, before a change that can be undone.
  keep(before: State): void {
    this.past.push(JSON.stringify(before));
    if (this.past.length > 100) this.past.shift();
    this.future = [];
  }

  undo(): boolean { return this.swap(this.past, this.future); }
  redo(): boolean { return this.swap(this.future, this.past); }
  get canUndo(): boolean { return this.past.length > 0; }
  get canRedo(): boolean { return this.future.length > 0; }

  private swap(from: string[], to: string[]): boolean {
    const found = from.pop();
    if (found === undefined) return false;
    to.push(JSON.stringify(this.state));
    const tab = this.state.tab;
    this.state = { ...JSON.parse(found), tab };
    return true;
  }
}

// What the server is told: a preset by its name, other points as they are.
export function sent(state: State): object {
  const data = state.data.preset ? { preset: state.data.preset } : state.data;
  return { data, first: state.first, second: state.second, view: state.view };
}

export async function toAddress(state: State): Promise<string | null> {
  const text = JSON.stringify({ ...sent(state), tab: state.tab });
  const code = await packed(text);
  return code.length <= LONGEST ? `#s=${code}` : null;
}

export interface Kept { data: Data | { preset: string }; first: Choice; second: Choice | null; view: View; tab: string }

export async function fromAddress(hash: string): Promise<Kept | null> {
  const found = /^#s=([\w-]+)$/.exec(hash);
  if (!found) return null;
  try {
    return JSON.parse(await unpacked(found[1]));
  } catch {
    return null;
  }
}

async function through(bytes: BlobPart, stream: GenericTransformStream): Promise<Uint8Array<ArrayBuffer>> {
  const piped = new Blob([bytes]).stream().pipeThrough(stream as ReadableWritablePair<Uint8Array, Uint8Array<ArrayBuffer>>);
  return new Uint8Array(await new Response(piped).arrayBuffer());
}

async function packed(text: string): Promise<string> {
  const bytes = await through(new TextEncoder().encode(text), new CompressionStream("deflate-raw"));
  let raw = "";
  for (const byte of bytes) raw += String.fromCharCode(byte);
  return btoa(raw).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

async function unpacked(code: string): Promise<string> {
  const raw = atob(code.replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = Uint8Array.from(raw, (sign) => sign.charCodeAt(0));
  return new TextDecoder().decode(await through(bytes, new DecompressionStream("deflate-raw")));
}
