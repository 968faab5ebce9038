import { expect, it } from "vitest";
import type { JsonObject } from "../../src/domain/json.ts";
import type { SessionEvent } from "../../src/domain/event.ts";
import { feedEntries, type FeedName } from "../../src/domain/feed.ts";
import { presentOccurrence } from "../../src/view/occurrence.ts";
import { requestOf, Walk } from "../kit/step/walk.ts";

const { state } = new Walk().prompt("p1");
const waiting = (details?: JsonObject): SessionEvent => ({
  type: "notice",
  data: { kind: "waiting", message: "Waits.", ...(details && { details }) },
});
const namesOf = (events: readonly SessionEvent[]) => feedEntries(events, state).map(({ name }) => name);

it("the feed lists a wait for a slot, a limit, a client and a node", () => {
  const details = ["plan_limit", "environment", "workspace"].map((kind) => ({ kind }));
  expect(namesOf([waiting(), ...details.map(waiting)])).toEqual(Array(4).fill("session.waits"));
});

it("the feed lists neither the progress of an installation nor a message that is sent again", () => {
  const walk = new Walk().prompt("p1").hear({ type: "installing", percent: 0 }, { type: "installing", percent: 40 });
  expect(walk.log.filter(({ type }) => type === "notice")).toHaveLength(2);
  expect(feedEntries(walk.log, walk.state)).toEqual([]);
  expect(namesOf([waiting({ messageId: "m1" })])).toEqual([]);
});

const SECRET = "sk-secret-of-a-test";
const mask = (fields: JsonObject) =>
  JSON.parse(JSON.stringify(fields).replaceAll(SECRET, "***")) as Record<string, unknown>;
const present = (name: FeedName, event: SessionEvent) =>
  presentOccurrence(name, { id: 1, at: 0, ...event }, { session: { id: "s", title: undefined, status: "idle" }, mask });

it("texts of an event are masked before they are cut", () => {
  const message = `${"x".repeat(190)}${SECRET}`;
  const { data } = present("session.waits", { type: "notice", data: { kind: "waiting", message } });
  expect(data["text"]).toBe(`${"x".repeat(190)}***`);
});

it("an event of a request has the tool, and nothing of its input", () => {
  const input = { content: "content of a file" };
  const data = requestOf("r1", { toolName: "Write", input });
  const asked = present("answer.needed", { type: "permission.asked", data });
  expect(asked.data).toMatchObject({ requestId: "r1", toolName: "Write", text: "Claude Code asks to use Write." });
  expect(JSON.stringify(asked)).not.toContain("content of a file");
});
