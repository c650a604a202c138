// What travels: the state of a page, questions and answers. The Python side is src/mercer/studio/session.py.

export interface Packed { f32: string; shape: number[] }

export interface Data {
  preset: string;
  kind: "vectors" | "strings" | "graphs";
  task: "classes" | "numbers";
  columns: string[];
  target: string;
  labels: string[];
  X: any[];
  y: number[];
  notes: string[];
}

export interface Choice {
  machine: string;
  settings: Record<string, number>;
  kernel: string;
  moved: Record<string, number>;
  approximation: string;
  rank: number;
}

export interface View {
  axes?: [number, number];
  box?: [number, number, number, number] | null;
  held?: number[];
  plane?: "slice" | "components";
  chosen?: number | null;
  at?: [number, number] | null;
  order?: string;
  surface?: [string, string] | null;
  coordinates?: [number, number, number] | null;
  samples?: number;
}

export interface State {
  data: Data;
  first: Choice;
  second: Choice | null;
  view: View;
  tab: string;
}

export interface SliderInfo { place: number; name: string; value: number; low: number; high: number; log: boolean }
export interface MachineSlider { name: string; default: number; low: number; high: number; words: string; whole: boolean }
export interface Machine {
  name: string; task: string; words: string; most: number; unlabelled: boolean; approximates: boolean;
  sliders: MachineSlider[];
}
export interface Preset { title: string; machine: string; kernel: string; settings: Record<string, number> }

export interface Hello {
  presets: Record<string, Preset>;
  machines: Machine[];
  approximations: string[];
  limits: { rows: number; bytes: number };
  points: Data | null;
  table: any;
}

export interface Problem { where: string; sentence: string; column?: number }

export interface Answer {
  seq: number;
  stale?: boolean;
  problem: Problem | null;
  kernel: { text: string; latex: string; status: string; sliders: SliderInfo[] } | null;
  fit: any;
  views: Record<string, any>;
  box: [number, number, number, number] | null;
  data?: Data;
  ms: number;
}

export interface Transport {
  send(message: object): void;
  listen(heard: (message: any) => void, lost: () => void): void;
}

// Numbers of four bytes in base 64, row by row.
export function unpack(value: Packed | null | undefined): Float32Array {
  if (!value) return new Float32Array(0);
  const text = atob(value.f32);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return new Float32Array(bytes.buffer);
}

export function short(value: number | null | undefined, digits = 3): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value !== 0 && (Math.abs(value) >= 1e5 || Math.abs(value) < 1e-3)) {
    return value.toExponential(digits - 1).replace("e+", "e");
  }
  return String(Number(value.toPrecision(digits)));
}
