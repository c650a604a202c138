// One way to draw, two papers: a canvas for the screen, SVG for a file. Views draw with a Pen and do not know which.

export interface Ink { stroke?: string; fill?: string; width?: number; dash?: number[]; alpha?: number }

export interface Pen {
  readonly width: number;
  readonly height: number;
  line(points: ArrayLike<number>, ink: Ink, closed?: boolean): void;
  text(words: string, x: number, y: number, ink: TextInk): void;
  image(pixels: ImageData, x: number, y: number, w: number, h: number, smooth: boolean): void;
  circle(x: number, y: number, r: number, ink: Ink): void;
  // Many closed outlines with one ink: far quicker than one by one.
  outlines(paths: number[][], ink: Ink): void;
  clip(x: number, y: number, w: number, h: number, inside: () => void): void;
}

export interface TextInk { fill: string; size?: number; align?: "left" | "center" | "right"; bold?: boolean; turn?: boolean }

const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";

export class CanvasPen implements Pen {
  readonly width: number;
  readonly height: number;
  private c: CanvasRenderingContext2D;

  constructor(canvas: HTMLCanvasElement) {
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    this.width = canvas.clientWidth || 300;
    this.height = canvas.clientHeight || 200;
    const [w, h] = [Math.round(this.width * ratio), Math.round(this.height * ratio)];
    if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
    this.c = canvas.getContext("2d")!;
    this.c.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.c.clearRect(0, 0, this.width, this.height);
  }

  private ink(ink: Ink): void {
    const c = this.c;
    c.globalAlpha = ink.alpha ?? 1;
    if (ink.fill) { c.fillStyle = ink.fill; c.fill(); }
    if (ink.stroke) {
      c.strokeStyle = ink.stroke;
      c.lineWidth = ink.width ?? 1;
      c.setLineDash(ink.dash ?? []);
      c.lineJoin = "round";
      c.stroke();
    }
    c.globalAlpha = 1;
  }

  line(points: ArrayLike<number>, ink: Ink, closed = false): void {
    if (points.length < 4) return;
    this.c.beginPath();
    for (let i = 0; i < points.length; i += 2) this.c.lineTo(points[i], points[i + 1]);
    if (closed) this.c.closePath();
    this.ink(ink);
  }

  outlines(paths: number[][], ink: Ink): void {
    if (!paths.length) return;
    this.c.beginPath();
    for (const path of paths) {
      this.c.moveTo(path[0], path[1]);
      for (let i = 2; i < path.length; i += 2) this.c.lineTo(path[i], path[i + 1]);
      this.c.closePath();
    }
    this.ink(ink);
  }

  circle(x: number, y: number, r: number, ink: Ink): void {
    this.c.beginPath();
    this.c.arc(x, y, r, 0, 2 * Math.PI);
    this.ink(ink);
  }

  text(words: string, x: number, y: number, ink: TextInk): void {
    const c = this.c;
    c.save();
    c.fillStyle = ink.fill;
    c.font = `${ink.bold ? 600 : 400} ${ink.size ?? 11}px ${FONT}`;
    c.textAlign = ink.align ?? "left";
    c.textBaseline = "middle";
    c.translate(x, y);
    if (ink.turn) c.rotate(-Math.PI / 2);
    c.fillText(words, 0, 0);
    c.restore();
  }

  image(pixels: ImageData, x: number, y: number, w: number, h: number, smooth: boolean): void {
    this.c.imageSmoothingEnabled = smooth;
    this.c.drawImage(asCanvas(pixels), x, y, w, h);
  }

  clip(x: number, y: number, w: number, h: number, inside: () => void): void {
    this.c.save();
    this.c.beginPath();
    this.c.rect(x, y, w, h);
    this.c.clip();
    inside();
    this.c.restore();
  }
}

export class SvgPen implements Pen {
  private pieces: string[] = [];
  private clips = 0;

  constructor(readonly width: number, readonly height: number, private paper: string) {}

  private ink(ink: Ink): string {
    const stroke = ink.stroke ? ` stroke="${ink.stroke}" stroke-width="${ink.width ?? 1}" stroke-linejoin="round"` : "";
    const dash = ink.dash?.length ? ` stroke-dasharray="${ink.dash.join(" ")}"` : "";
    const alpha = ink.alpha !== undefined && ink.alpha < 1 ? ` opacity="${ink.alpha}"` : "";
    return ` fill="${ink.fill ?? "none"}"${stroke}${dash}${alpha}`;
  }

  line(points: ArrayLike<number>, ink: Ink, closed = false): void {
    if (points.length < 4) return;
    let d = "";
    for (let i = 0; i < points.length; i += 2) d += `${i ? "L" : "M"}${points[i].toFixed(2)} ${points[i + 1].toFixed(2)}`;
    this.pieces.push(`<path d="${d}${closed ? "Z" : ""}"${this.ink(ink)}/>`);
  }

  outlines(paths: number[][], ink: Ink): void {
    for (const path of paths) this.line(path, ink, true);
  }

  circle(x: number, y: number, r: number, ink: Ink): void {
    this.pieces.push(`<circle cx="${x.toFixed(2)}" cy="${y.toFixed(2)}" r="${r.toFixed(2)}"${this.ink(ink)}/>`);
  }

  text(words: string, x: number, y: number, ink: TextInk): void {
    const anchor = { left: "start", center: "middle", right: "end" }[ink.align ?? "left"];
    const turn = ink.turn ? ` transform="rotate(-90 ${x} ${y})"` : "";
    const safe = words.replace(/&/g, "&amp;").replace(/</g, "&lt;");
    this.pieces.push(
      `<text x="${x}" y="${y}" dy="0.35em" font-size="${ink.size ?? 11}" font-family="sans-serif" ` +
        `font-weight="${ink.bold ? 600 : 400}" text-anchor="${anchor}" fill="${ink.fill}"${turn}>${safe}</text>`,
    );
  }

  image(pixels: ImageData, x: number, y: number, w: number, h: number, smooth: boolean): void {
    const style = smooth ? "" : ` style="image-rendering:pixelated"`;
    const url = asCanvas(pixels).toDataURL("image/png");
    this.pieces.push(`<image x="${x}" y="${y}" width="${w}" height="${h}" preserveAspectRatio="none" href="${url}"${style}/>`);
  }

  clip(x: number, y: number, w: number, h: number, inside: () => void): void {
    this.clips += 1;
    const name = `c${this.clips}`;
    this.pieces.push(`<clipPath id="${name}"><rect x="${x}" y="${y}" width="${w}" height="${h}"/></clipPath><g clip-path="url(#${name})">`);
    inside();
    this.pieces.push("</g>");
  }

  file(): string {
    return (
      `<svg xmlns="http://www.w3.org/2000/svg" width="${this.width}" height="${this.height}" viewBox="0 0 ${this.width} ${this.height}">` +
      `<rect width="100%" height="100%" fill="${this.paper}"/>${this.pieces.join("")}</svg>`
    );
  }
}

function asCanvas(pixels: ImageData): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  canvas.width = pixels.width;
  canvas.height = pixels.height;
  canvas.getContext("2d")!.putImageData(pixels, 0, 0);
  return canvas;
}
