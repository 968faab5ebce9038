// Returns the difference of two texts as one hunk with three lines of context.
const AROUND = 3;

export function patchOf(before, after) {
  const [old, now] = [before, after].map((text) => text.replace(/\n$/, "").split("\n"));
  let head = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) head += 1;
  let tail = 0;
  const most = Math.min(old.length, now.length) - head;
  while (tail < most && old.at(-1 - tail) === now.at(-1 - tail)) tail += 1;
  if (head === old.length && head === now.length) return [];
  const from = Math.max(0, head - AROUND);
  const behind = Math.min(tail, AROUND);
  const lines = [
    ...old.slice(from, head).map((line) => ` ${line}`),
    ...old.slice(head, old.length - tail).map((line) => `-${line}`),
    ...now.slice(head, now.length - tail).map((line) => `+${line}`),
    ...old.slice(old.length - tail, old.length - tail + behind).map((line) => ` ${line}`),
  ];
  const count = (list) => head - from + (list.length - tail - head) + behind;
  return [{ oldStart: from + 1, oldLines: count(old), newStart: from + 1, newLines: count(now), lines }];
}
