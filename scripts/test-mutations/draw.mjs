// Draws faults by a seed: the same number per operator, each place equally likely.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { filesIn } from "../test-coverage/files.mjs";
import { OPERATORS, faultsOf } from "./operators.mjs";

const FOLDERS = ["src/claude", "src/engine", "src/http", "src/store", "src/tools"];

/** Random numbers in [0, 1) that are the same for the same seed (mulberry32). */
function randomOf(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** `only` is part of a file's path. */
export function drawFaults(root, { count, only = "", seed }) {
  const files = FOLDERS.flatMap((folder) => filesIn(root, folder)).filter((file) => file.includes(only));
  const all = files.flatMap((file) => faultsOf(file, readFileSync(join(root, file), "utf8")));
  const random = randomOf(seed);
  const left = OPERATORS.map((operator) => all.filter((fault) => fault.operator === operator));
  const drawn = [];
  let at = 0;
  while (drawn.length < count && left.some((faults) => faults.length > 0)) {
    const next = left[at++ % left.length];
    drawn.push(...next.splice(Math.floor(random() * next.length), 1));
  }
  return drawn;
}
