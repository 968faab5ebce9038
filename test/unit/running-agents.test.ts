import { expect, it } from "vitest";

import { RunningAgents } from "../../src/claude/running-agents.ts";
import type { JsonObject } from "../../src/domain/json.ts";

type Told = readonly [name: string, message: JsonObject];

const state = (now: string): Told => ["system/session_state_changed", { state: now }];
const begins = (id: string, type = "local_agent"): Told => ["system/task_started", { task_id: id, task_type: type }];
const updated = (id: string, patch: JsonObject): Told => ["system/task_updated", { task_id: id, patch }];
const ended = (id: string): Told => ["system/task_notification", { task_id: id, status: "stopped" }];
const listed = (...ids: string[]): Told => [
  "system/background_tasks_changed",
  { tasks: ids.map((id) => ({ task_id: id })) },
];
const says = (id: string): Told => ["assistant", { agent_id: id, parent_tool_use_id: "toolu_1" }];

it.each<[title: string, before: Told[], last: Told, signals: object[]]>([
  ["nothing while Claude Code works", [begins("a"), state("running"), begins("b")], ended("a"), []],
  ["that Claude Code is idle", [begins("a"), ended("a")], state("idle"), [{ type: "idle" }]],
  ["who still runs", [begins("a"), begins("b"), ended("a")], state("idle"), [{ type: "idle", agents: ["b"] }]],
  ["no shell", [begins("a", "local_bash")], state("idle"), [{ type: "idle" }]],
  ["none that is listed", [begins("a"), listed("a")], state("idle"), [{ type: "idle" }]],
  ["one that has only spoken", [says("a")], state("idle"), [{ type: "idle", agents: ["a"] }]],
  ["no late word of one that has ended", [begins("a"), ended("a"), says("a")], state("idle"), [{ type: "idle" }]],
  ["one that is resumed", [begins("a"), ended("a"), begins("a")], state("idle"), [{ type: "idle", agents: ["a"] }]],
  [
    "idle again when one ends",
    [begins("a"), begins("b"), state("idle")],
    ended("a"),
    [{ type: "idle", agents: ["b"] }],
  ],
  [
    "idle again when the last one is killed",
    [begins("a"), state("idle")],
    updated("a", { status: "killed" }),
    [{ type: "idle" }],
  ],
  ["idle again when the last one is listed", [begins("a"), state("idle")], listed("a"), [{ type: "idle" }]],
  ["an end once", [begins("a"), state("idle"), updated("a", { status: "failed" })], ended("a"), []],
  ["no other news of one", [begins("a"), state("idle")], updated("a", { is_backgrounded: true }), []],
  ["nothing when Claude Code works again", [begins("a"), state("idle"), state("running")], ended("a"), []],
  [
    "nothing of messages that lack their fields",
    [
      ["system/task_started", {}],
      ["system/task_updated", {}],
    ],
    ["assistant", {}],
    [],
  ],
])("subagents that run: tells %s", (_, before, last, signals) => {
  const agents = new RunningAgents();
  for (const told of before) agents.read(...told);
  expect(agents.read(...last)).toEqual(signals);
});
