import { expect, it } from "vitest";

import { RunningAgents } from "../../src/claude/running-agents.ts";
import type { JsonObject } from "../../src/domain/json.ts";

type Message = readonly [name: string, message: JsonObject];

const state = (now: string): Message => ["system/session_state_changed", { state: now }];
const begins = (id: string, type = "local_agent"): Message => ["system/task_started", { task_id: id, task_type: type }];
const updated = (id: string, patch: JsonObject): Message => ["system/task_updated", { task_id: id, patch }];
const ended = (id: string): Message => ["system/task_notification", { task_id: id, status: "stopped" }];
const listed = (...ids: string[]): Message => [
  "system/background_tasks_changed",
  { tasks: ids.map((id) => ({ task_id: id })) },
];
const says = (id: string): Message => ["assistant", { agent_id: id, parent_tool_use_id: "toolu_1" }];

it.each<[title: string, before: Message[], last: Message, signals: object[]]>([
  ["nothing while Claude Code works", [begins("a"), state("running"), begins("b")], ended("a"), []],
  ["idle", [begins("a"), ended("a")], state("idle"), [{ type: "idle" }]],
  [
    "the agents that still run",
    [begins("a"), begins("b"), ended("a")],
    state("idle"),
    [{ type: "idle", agents: ["b"] }],
  ],
  ["no shell", [begins("a", "local_bash")], state("idle"), [{ type: "idle" }]],
  ["no agent in the list of background tasks", [begins("a"), listed("a")], state("idle"), [{ type: "idle" }]],
  ["an agent that has only spoken", [says("a")], state("idle"), [{ type: "idle", agents: ["a"] }]],
  ["no agent that speaks after its end", [begins("a"), ended("a"), says("a")], state("idle"), [{ type: "idle" }]],
  [
    "an agent that is resumed",
    [begins("a"), ended("a"), begins("a")],
    state("idle"),
    [{ type: "idle", agents: ["a"] }],
  ],
  [
    "idle again when an agent ends",
    [begins("a"), begins("b"), state("idle")],
    ended("a"),
    [{ type: "idle", agents: ["b"] }],
  ],
  [
    "idle again when the last agent is killed",
    [begins("a"), state("idle")],
    updated("a", { status: "killed" }),
    [{ type: "idle" }],
  ],
  ["idle again when the last agent is listed", [begins("a"), state("idle")], listed("a"), [{ type: "idle" }]],
  ["the end of an agent once", [begins("a"), state("idle"), updated("a", { status: "failed" })], ended("a"), []],
  ["no other update of an agent", [begins("a"), state("idle")], updated("a", { is_backgrounded: true }), []],
  ["nothing when Claude Code works again", [begins("a"), state("idle"), state("running")], ended("a"), []],
  [
    "nothing for messages without their fields",
    [
      ["system/task_started", {}],
      ["system/task_updated", {}],
    ],
    ["assistant", {}],
    [],
  ],
])("RunningAgents signals %s", (_, before, last, signals) => {
  const agents = new RunningAgents();
  for (const message of before) agents.read(...message);
  expect(agents.read(...last)).toEqual(signals);
});
