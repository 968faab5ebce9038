import type { Fill } from "./figure.ts";

/** Current colors of usage.css (light or dark) in a form that a canvas accepts. */
export interface Palette {
  readonly text: string;
  readonly soft: string;
  readonly line: string;
  readonly ground: string;
  readonly raised: string;
  readonly font: string;
  readonly fills: ReadonlyMap<Fill, string | CanvasPattern>;
}

const FILLS: readonly Fill[] = [1, 2, 3, 4, 5, 6, "bad"];

export function paletteOf(canvas: HTMLCanvasElement): Palette {
  // Resolves custom properties: `getPropertyValue` would return the text as written, not a color.
  const probe = document.createElement("span");
  probe.hidden = true;
  canvas.parentElement?.append(probe);
  const colour = (name: string): string => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const ground = colour("ground");
  const fill = (each: Fill) => patternFor(canvas, each, [colour(`series-${String(each)}`), ground]);
  const palette = {
    text: colour("text"),
    soft: colour("soft"),
    line: colour("line"),
    ground,
    raised: colour("raised"),
    font: getComputedStyle(probe).fontFamily,
    fills: new Map(FILLS.map((each) => [each, fill(each)])),
  };
  probe.remove();
  return palette;
}

/** Calls `listener` when the color scheme changes, until the returned function is called. */
export function onColorsChanged(listener: () => void): () => void {
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  scheme.addEventListener("change", listener);
  const chosen = new MutationObserver(listener);
  chosen.observe(document.documentElement, { attributes: true });
  return () => {
    scheme.removeEventListener("change", listener);
    chosen.disconnect();
  };
}

const TILE = 8;

/** Fills with a color and a pattern, so that colors need not be told apart. usage.css has equal patterns for the keys. */
function patternFor(canvas: HTMLCanvasElement, fill: Fill, [colour, ground]: [string, string]): string | CanvasPattern {
  const lines = LINES[fill];
  const tile = document.createElement("canvas");
  tile.width = TILE;
  tile.height = TILE;
  const pen = tile.getContext("2d");
  if (lines.length === 0 || !pen) return colour;
  pen.fillStyle = colour;
  pen.fillRect(0, 0, TILE, TILE);
  pen.strokeStyle = ground;
  // Just strong enough to tell the patterns apart.
  pen.globalAlpha = 0.6;
  pen.lineWidth = 1.25;
  for (const [fromX, fromY, toX, toY] of lines) {
    pen.beginPath();
    pen.moveTo(fromX, fromY);
    pen.lineTo(toX, toY);
    pen.stroke();
  }
  return canvas.getContext("2d")?.createPattern(tile, "repeat") ?? colour;
}

type Line = readonly [fromX: number, fromY: number, toX: number, toY: number];

/** Lines end outside of the tile, so that they meet the lines of the next tile. */
const RISING: readonly Line[] = [
  [-2, 2, 2, -2],
  [-2, 10, 10, -2],
  [6, 10, 10, 6],
];
const FALLING: readonly Line[] = [
  [-2, 6, 2, 10],
  [-2, -2, 10, 10],
  [6, -2, 10, 2],
];
const LEVEL: readonly Line[] = [[0, 4, 8, 4]];
const UPRIGHT: readonly Line[] = [[4, 0, 4, 8]];

const LINES: Readonly<Record<Fill, readonly Line[]>> = {
  1: [],
  2: RISING,
  3: LEVEL,
  4: FALLING,
  5: UPRIGHT,
  6: [...LEVEL, ...UPRIGHT],
  bad: [...RISING, ...FALLING],
};
