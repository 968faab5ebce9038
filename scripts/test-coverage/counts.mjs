// Maps V8's counts of generated code to points of the sources, through the source map and the innermost range.
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { decode } from "@jridgewell/sourcemap-codec";
import { linesOf, pointsOf } from "./source-points.mjs";

/** Vite's module runner wraps each module in a function, which its source map omits. */
const WRAPPER = /^'use strict';async \([^)]*\)=>\{\{/;
const INLINE = /\/\/# sourceMappingURL=data:application\/json;[^,]*base64,([\w+/=]+)/g;

/** Adds up the counts of any number of processes; `root` is the folder of the project. */
export class Counts {
  #root;
  #sources = new Map();
  #scripts = new Map();

  constructor(root) {
    this.#root = root;
  }

  /** By path of the source: its points, the count of each, and the tests that reached it. */
  get sources() {
    return this.#sources;
  }

  /** Includes a file of src that no process has loaded. */
  source(file) {
    let source = this.#sources.get(file);
    if (!source) {
      const text = readFileSync(resolve(this.#root, file), "utf8");
      const points = pointsOf(file, text);
      const tests = points.map(() => new Set());
      source = { points, lines: linesOf(text), counts: points.map(() => 0), known: points.map(() => false), tests };
      this.#sources.set(file, source);
    }
    return source;
  }

  /** Counts one process of a test, from V8's output. */
  add({ result }, test) {
    for (const script of result) {
      for (const { source, probes } of this.#probes(script)) {
        const countAt = counter(script.functions);
        for (const [index, offset] of probes) {
          const count = countAt(offset);
          source.counts[index] += count;
          if (count > 0) source.tests[index].add(test);
        }
      }
    }
  }

  /** For each source in a script, the generated offset of each point, in the order of offsets. */
  #probes({ url, source: text }) {
    const key = text === undefined ? url : `${url}\n${text}`;
    let probes = this.#scripts.get(key);
    if (!probes) {
      probes = this.#probesOf(url, text);
      this.#scripts.set(key, probes);
    }
    return probes;
  }

  /** Written by `node scripts/build.mjs --source-maps`. */
  #mapOfBuilt(file) {
    const map = join(this.#root, "coverage/maps", `${relative("dist", file)}.map`);
    return existsSync(map) ? JSON.parse(readFileSync(map, "utf8")) : undefined;
  }

  #probesOf(url, text) {
    if (!url.startsWith("file://")) return [];
    const path = fileURLToPath(url);
    const inside = relative(this.#root, path);
    if (!/^(dist|src)\//.test(inside)) return [];
    const code = text ?? (existsSync(path) ? readFileSync(path, "utf8") : "");
    const map = text === undefined ? this.#mapOfBuilt(inside) : inlineMap(text);
    if (!map) return [];
    const found = new Map();
    for (const [from, to] of mappings(code, map)) {
      const file = relative(this.#root, resolve(dirname(path), map.sourceRoot ?? "", from.source));
      if (!/^src\/.*\.ts$/.test(file)) continue;
      const source = this.source(file);
      if (!found.has(source)) found.set(source, []);
      found.get(source).push([source.lines.starts[from.line] + from.column, to]);
    }
    return [...found].map(([source, pairs]) => ({ source, probes: probesIn(source, pairs) }));
  }
}

function inlineMap(text) {
  const [, encoded] = [...text.matchAll(INLINE)].at(-1) ?? [];
  return encoded && JSON.parse(Buffer.from(encoded, "base64").toString("utf8"));
}

/** Every pair of a position in a source and an offset in the code. */
function* mappings(code, map) {
  const { starts } = linesOf(code);
  const ahead = WRAPPER.exec(code)?.[0].length ?? 0;
  for (const [line, segments] of decode(map.mappings).entries()) {
    for (const [column, at, sourceLine, sourceColumn] of segments) {
      if (at === undefined) continue;
      const offset = starts[line] + column + (line === 0 ? ahead : 0);
      yield [{ source: map.sources[at], line: sourceLine, column: sourceColumn }, offset];
    }
  }
}

/** Reads a point at the first mapped position from its probe on, within its end; a point without one was compiled away. */
function probesIn(source, pairs) {
  pairs.sort(([a], [b]) => a - b);
  const probes = [];
  for (const [index, { probe, end, instead }] of source.points.entries()) {
    if (instead !== undefined) continue;
    let low = 0;
    let high = pairs.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (pairs[middle][0] < probe) low = middle + 1;
      else high = middle;
    }
    const [place, offset] = pairs[low] ?? [Infinity];
    if (place >= end) continue;
    source.known[index] = true;
    probes.push([index, offset]);
  }
  return probes.toSorted(([, a], [, b]) => a - b);
}

/** Returns the count at offsets that are requested in ascending order. */
function counter(functions) {
  const ranges = functions
    .flatMap((each) => each.ranges)
    .toSorted((a, b) => a.startOffset - b.startOffset || b.endOffset - a.endOffset);
  const around = [];
  let next = 0;
  return (offset) => {
    for (; next < ranges.length && ranges[next].startOffset <= offset; next++) {
      while (around.length > 0 && around.at(-1).endOffset <= ranges[next].startOffset) around.pop();
      around.push(ranges[next]);
    }
    while (around.length > 0 && around.at(-1).endOffset <= offset) around.pop();
    return around.at(-1)?.count ?? 0;
  };
}
