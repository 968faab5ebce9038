// Keeps the state of files before each prompt, so that `rewind` can restore them.
import { readFileSync, rmSync, writeFileSync } from "node:fs";

export class Checkpoints {
  /** For each prompt, in order: its id, and the former content of files changed since. Content `null`: no file. */
  #prompts = [];

  begin(uuid) {
    this.#prompts.push({ uuid, files: new Map() });
  }

  keep(place, text) {
    const files = this.#prompts.at(-1)?.files;
    if (files && !files.has(place)) files.set(place, text);
  }

  rewind(uuid, isDry) {
    const at = this.#prompts.findIndex((prompt) => prompt.uuid === uuid);
    if (at < 0) return { canRewind: false, error: "No file checkpoint found for this message." };
    const files = new Map();
    for (const { files: changed } of this.#prompts.slice(at).toReversed())
      for (const [place, text] of changed) files.set(place, text);
    let [insertions, deletions] = [0, 0];
    for (const [place, text] of files) {
      const [now, before] = [linesOf(textOf(place)), linesOf(text)];
      insertions += before.filter((line) => !now.includes(line)).length;
      deletions += now.filter((line) => !before.includes(line)).length;
      if (isDry) continue;
      if (text === null) rmSync(place, { force: true });
      else writeFileSync(place, text);
    }
    const told = { filesChanged: [...files.keys()], insertions, deletions };
    return { canRewind: true, ...(isDry ? told : { skippedLinks: 0 }) };
  }
}

function textOf(place) {
  try {
    return readFileSync(place, "utf8");
  } catch {
    return null;
  }
}

function linesOf(text) {
  return text === null || text === "" ? [] : text.replace(/\n$/, "").split("\n");
}
