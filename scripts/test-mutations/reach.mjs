// The tests that could detect a fault, in the order in which they are tried.
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { digestOfSources } from "../test-coverage/files.mjs";
import { isTypeOnly, parse, walk } from "../test-coverage/source-points.mjs";
import { importersIn, testsNear } from "./imports.mjs";

/** Load tests measure this machine, not the behaviour of the server. */
const NEVER = ["test/load/"];

export class Reach {
  #root;
  #importers;
  #map;
  #recordedAt;

  constructor(root) {
    this.#root = root;
    this.#importers = importersIn(root);
    const file = join(root, "coverage/reached.json");
    const map = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : undefined;
    // What a test reaches is not known once it was changed.
    this.#recordedAt = map ? statSync(file).mtimeMs : 0;
    // The map is invalid for other sources.
    this.#map = map?.digest === digestOfSources(root) ? map : undefined;
  }

  /** The test files outside test/unit with a recorded map. */
  get recorded() {
    return (this.#map?.tests ?? []).filter((test) => !test.startsWith("test/unit/"));
  }

  /** Unit tests that import the file, the nearest first, except those that are known not to reach the fault. */
  unit(fault) {
    const near = testsNear(this.#importers, fault.file, "test/unit/");
    const place = this.#placeOf(fault);
    // Module-level code runs only for the first test of a worker.
    if (!this.#map || !place.inFunction) return near;
    const reaching = this.#reaching(fault.file, place.start);
    const isRecorded = (test) => statSync(join(this.#root, test)).mtimeMs < this.#recordedAt;
    const ruledOut = new Set(this.#map.tests.filter((test) => !reaching.includes(test) && isRecorded(test)));
    return near.filter((test) => !ruledOut.has(test));
  }

  /**
   * The other tests that reach the fault, the most specific first; and those that import the file, unless the map excludes them.
   */
  others(fault) {
    if (!this.#map) return [];
    const recorded = new Set(this.#map.tests);
    const unknown = testsNear(this.#importers, fault.file, "test/").filter((test) => !recorded.has(test));
    const reaching = this.#reaching(fault.file, this.#placeOf(fault).start);
    const others = [...reaching, ...unknown].filter(
      (test) => !test.startsWith("test/unit/") && !NEVER.some((dir) => test.startsWith(dir)),
    );
    const breadth = (test) => this.#breadths().get(test) ?? Infinity;
    return others.toSorted((a, b) => breadth(a) - breadth(b));
  }

  #reaching(file, start) {
    return (this.#map.files[file]?.[start] ?? []).map((at) => this.#map.tests[at]);
  }

  /** Number of statements that each test reaches. */
  #breadths() {
    if (this.#map.breadths) return this.#map.breadths;
    const breadths = new Map(this.#map.tests.map((test) => [test, 0]));
    for (const reached of Object.values(this.#map.files).flatMap((file) => Object.values(file))) {
      for (const at of reached) breadths.set(this.#map.tests[at], breadths.get(this.#map.tests[at]) + 1);
    }
    this.#map.breadths = breadths;
    return breadths;
  }

  /** The innermost statement around a fault in the map, and whether it is in a function. */
  #placeOf({ end, file, start }) {
    const known = this.#map?.files[file] ?? {};
    const place = { start: undefined, inFunction: false };
    walk(parse(readFileSync(join(this.#root, file), "utf8"), file), (node) => {
      if (isTypeOnly(node)) return false;
      if (node.type !== "Program" && (node.start > start || node.end < end)) return false;
      if (Object.hasOwn(known, node.start)) place.start = node.start;
      if (/Function/.test(node.type)) {
        place.inFunction = true;
        // A parameter's default is evaluated in a call: tests that reach the body may reach it, unlike tests that only load the file.
        const first = node.body?.body?.[0]?.start;
        if (end <= node.body?.start && Object.hasOwn(known, first)) place.start = first;
      }
      return undefined;
    });
    return place;
  }
}
