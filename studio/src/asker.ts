// Questions go out one at a time; of those that wait only the newest is kept, and old answers are dropped.

import type { Answer, Hello, Transport } from "./wire";

type Heard = (answer: Answer) => void;
interface Question { body: Record<string, unknown>; heard: Heard; mark: number }

class Lane {
  private flying: Question | null = null;
  private seq = -1;
  private next: Question | null = null;

  constructor(private send: (body: object) => number) {}

  ask(body: Record<string, unknown>, heard: Heard, mark = performance.now()): void {
    const waiting = this.next?.body;
    // a move counts from the state before it: that state may not be dropped
    if (waiting && "state" in waiting && "move" in body) body = { ...body, ...this.fold(waiting, body) };
    this.next = { body, heard, mark };
    this.go();
  }

  private fold(waiting: Record<string, unknown>, move: Record<string, unknown>): object {
    return { state: waiting.state, move: undefined, want: move.want, detail: move.detail };
  }

  private go(): void {
    if (this.flying || !this.next) return;
    this.flying = this.next;
    this.next = null;
    this.seq = this.send(this.flying.body);
  }

  take(answer: Answer): boolean {
    if (!this.flying || answer.seq !== this.seq) return false;
    const asked = this.flying;
    this.flying = null;
    const superseded = this.next !== null;
    this.go();
    if (!answer.stale) {
      asked.heard(answer);
      latencies.push({ ms: performance.now() - asked.mark, superseded, server: answer.ms });
      if (latencies.length > 500) latencies.shift();
    }
    return true;
  }

  get busy(): boolean { return this.flying !== null; }
}

// From the hand to the picture, in milliseconds: what the browser test prints.
export const latencies: { ms: number; superseded: boolean; server: number }[] = [];

export class Asker {
  private count = 0;
  private calls = new Map<number, (answer: any) => void>();
  readonly quick: Lane;
  readonly slow: Lane;

  constructor(private transport: Transport, lost: () => void) {
    const send = (body: object): number => {
      this.count += 1;
      this.transport.send({ seq: this.count, ...body });
      return this.count;
    };
    this.quick = new Lane(send);
    this.slow = new Lane(send);
    transport.listen((answer) => this.heard(answer), lost);
  }

  hello(): Promise<Hello> { return this.call({ hello: true }); }

  call(body: object): Promise<any> {
    this.count += 1;
    const seq = this.count;
    return new Promise((done) => {
      this.calls.set(seq, done);
      this.transport.send({ seq, ...body });
    });
  }

  private heard(answer: any): void {
    const call = this.calls.get(answer.seq);
    if (call) {
      this.calls.delete(answer.seq);
      call(answer);
      return;
    }
    if (!this.quick.take(answer)) this.slow.take(answer);
  }
}
