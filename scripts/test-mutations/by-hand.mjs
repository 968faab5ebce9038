// The faults that must always be detected, by name. Each text occurs exactly once in its file.
const BY_HAND = [
  {
    name: "wrong decision delivered",
    file: "src/engine/effects.ts",
    was: "return this.#process?.answer(effect.requestId, effect.decision);",
    becomes: 'return this.#process?.answer(effect.requestId, { ...effect.decision, behavior: "allow" });',
  },
  {
    name: "cursor off by one",
    file: "src/store/sqlite/events.ts",
    was: "{ sessionId, from: Math.max(from, 1), limit });",
    becomes: "{ sessionId, from: Math.max(from, 1) + 1, limit });",
  },
  {
    name: "lease not checked",
    file: "src/store/sqlite/events.ts",
    was: "WHERE id = $id AND owner = $owner AND epoch = $epoch AND last_event = $before`",
    becomes: "WHERE id = $id AND (owner = $owner OR epoch <= $epoch OR TRUE) AND last_event = $before`",
  },
  {
    name: "deadline not armed",
    file: "src/engine/actor.ts",
    was: "const due = nextDeadline(this.#state, this.#session.policy);",
    becomes: "const due = [nextDeadline(this.#state, this.#session.policy)].find(() => false);",
  },
  {
    name: "scope not checked",
    file: "src/engine/actions/scope.ts",
    was: "if (scopes.includes(needed)) return;",
    becomes: "if (scopes.includes(needed) || scopes.length > 0) return;",
  },
  {
    name: "secret not masked",
    file: "src/log/mask.ts",
    was: "return { text, unfinished, fields, event: (event) => maskEvent(event, { text, fields }) };",
    becomes: "return { text, unfinished, fields, event: (event) => event };",
  },
];

/** In the form of drawn faults: `{ operator, file, line, start, end, was, becomes }`. */
export function faultsByHand(read) {
  return BY_HAND.map(({ becomes, file, name, was }) => {
    const text = read(file);
    const start = text.indexOf(was);
    if (start < 0 || text.includes(was, start + 1)) throw new Error(`${name}: not once in ${file}: ${was}`);
    const line = text.slice(0, start).split("\n").length;
    return { operator: name, file, line, start, end: start + was.length, was, becomes };
  });
}
