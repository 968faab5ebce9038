import { randomUUID } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { z } from "zod";

import { agent, bash, read, write, type Scenarios } from "./calls.ts";
import { AT_LIMITS } from "./limit-scenarios.ts";

const ALLOW = { decision: "allow" };
const DENY = { decision: "deny", denyMessage: "Not that one." };

/** Played in a mode that needs approval for every change. */
const ASKED: Scenarios = {
  "two turns of text in one process": async (stage) => {
    await stage.prompt([{ text: ["One, ", "two, ", "three."] }]);
    await stage.prompt([{ thinking: "Hm.", text: "Four.", usage: { input_tokens: 1234, output_tokens: 77 } }]);
  },
  "tools that run unasked": async (stage) => {
    writeFileSync(join(stage.cwd, "a.txt"), "one\ntwo\n");
    const tools = [read(join(stage.cwd, "a.txt")), bash("echo out; echo err >&2"), bash("ls nothing-there")];
    await stage.prompt([...tools.map((tool) => ({ tools: [tool] })), { text: "Looked." }]);
  },
  "files written and changed, allowed": async (stage) => {
    const file = join(stage.cwd, "new.txt");
    const edit = { name: "Edit", input: { file_path: file, old_string: "hello", new_string: "good day" } };
    await stage.prompt([
      { tools: [write(file)] },
      { tools: [edit] },
      { tools: [write(file, "new\n")] },
      { text: "Done." },
    ]);
    await stage.answer([ALLOW]);
  },
  "a request denied, and one with another input": async (stage) => {
    const [a, b] = [join(stage.cwd, "a"), join(stage.cwd, "b")];
    await stage.prompt([{ tools: [write(a)] }, { tools: [bash("touch x")] }, { text: "Done." }]);
    const updatedInput = { command: `touch ${b}` };
    await stage.answer([DENY, { ...ALLOW, permissionOptions: { updatedInput } }]);
  },
  "a request denied with an interrupt, and a turn after it": async (stage) => {
    await stage.prompt([{ tools: [write(join(stage.cwd, "a"))] }, { text: "Never said." }]);
    await stage.answer([{ ...DENY, interrupt: true }]);
    await stage.prompt([{ text: "On." }]);
  },
  "a question": async (stage) => {
    const options = ["red", "blue"].map((label) => ({ label, description: `It is ${label}.` }));
    const questions = [{ question: "Which colour?", header: "Colour", multiSelect: false, options }];
    await stage.prompt([{ tools: [{ name: "AskUserQuestion", input: { questions } }] }, { text: "Asked." }]);
    await stage.answer([{ answers: { "Which colour?": "blue" } }]);
  },
  "a subagent in the background that asks": async (stage) => {
    const gate = stage.gate("agent");
    const helper = [{ gateBefore: gate, tools: [write(join(stage.cwd, "by-agent"))] }, { text: "Helped." }];
    const script = [{ tools: [agent(helper)] }, { text: "It is on its way." }, { text: "All is done." }];
    await stage.prompt(script, { waitMs: 0 });
    await stage.told('"result":"It is on its way."');
    stage.world.model.release(gate);
    await stage.answer([ALLOW]);
  },
  "allowed for the session": async (stage) => {
    const script = [{ tools: [bash("touch a")] }, { tools: [bash("touch b")] }, { text: "Done." }];
    await stage.prompt(script);
    await stage.answer([{ decision: "allow_for_session" }]);
  },
  "what a session has used, and what a shell has written": async (stage) => {
    const loop = bash("echo begun; while [ ! -e go ]; do sleep 0.05; done", { run_in_background: true });
    await stage.prompt([{ tools: [loop] }, { text: "It runs." }, { text: "It ended." }]);
    const { background } = await stage.check({ waitMs: 0 });
    const taskId = background[0]?.id;
    const begun = async () => JSON.stringify(await stage.act("task_output", { taskId })).includes("begun");
    while (!(await begun())) await sleep(20);
    const { usage } = z.object({ usage: z.looseObject({}) }).parse(await stage.act("usage"));
    const { context: _, ...used } = usage;
    return [await stage.act("task_output", { taskId }), used];
  },
};

/** Interruptions of a turn: by an interrupt, a message, an error, another mode. */
const DISTURBED: Scenarios = {
  "an interrupt while it waits for the model": async (stage) => {
    await stage.prompt([{ gateBefore: stage.gate("never"), text: "Never said." }], { waitMs: 0 });
    await stage.requested();
    await stage.act("interrupt");
    await stage.server.end(stage.sessionId);
    await stage.prompt([{ text: "On." }]);
  },
  "an interrupt while something is asked": async (stage) => {
    await stage.prompt([{ tools: [write(join(stage.cwd, "a"))] }, { text: "Never said." }]);
    await stage.act("interrupt");
    await stage.server.end(stage.sessionId);
    await stage.prompt([{ text: "On." }]);
  },
  "a message that joins a turn": async (stage) => {
    const gate = stage.gate("steer");
    await stage.prompt([{ gateBefore: gate, tools: [bash("ls")] }, { text: "Steered." }], { waitMs: 0 });
    await stage.requested();
    await stage.prompt([{ text: "By the second." }], { whenBusy: "steer", waitMs: 0 });
    stage.world.model.release(gate);
    await stage.server.end(stage.sessionId);
  },
  "an API error that no retry helps": async (stage) => {
    await stage.prompt([{ error: { status: 400, message: "No." }, times: 20 }]);
    await stage.prompt([{ error: { status: 403, message: "Forbidden." }, times: 20 }]);
    await stage.prompt([{ error: { status: 401, message: "This key opens nothing." }, times: 20 }]);
    await stage.prompt([{ text: "On." }]);
  },
  "an API error that a retry helps, and one that none does": async (stage) => {
    await stage.prompt([{ error: { status: 529 }, text: "Through." }]);
    await stage.prompt([{ error: { status: 429 }, times: 20 }]);
  },
  "another model and another mode": async (stage) => {
    await stage.prompt([{ text: "One." }]);
    await stage.act("set_model", { model: "haiku" });
    await stage.act("set_permission_mode", { permissionMode: "acceptEdits" });
    await stage.prompt([{ tools: [write(join(stage.cwd, "c"))] }, { tools: [bash("touch b")] }, { text: "Two." }]);
  },
};

/** Three requests in random order. */
const AT_ONCE: Scenarios = {
  "requests at the same time": async (stage) => {
    const files = ["one", "two", "three"].map((name) => join(stage.elsewhere, name));
    for (const file of files) writeFileSync(file, "text\n");
    await stage.prompt([{ tools: files.map(read) }, { text: "Read." }], { waitMs: 0 });
    await stage.told("three", 2);
    await stage.answer([ALLOW]);
  },
};

/** Played with Bash allowed. */
const SHELLS: Scenarios = {
  "an interrupt while a command runs": async (stage) => {
    const command = "touch begun; while :; do sleep 0.05; done";
    await stage.prompt([{ tools: [bash(command)] }, { text: "Never said." }], { waitMs: 0 });
    while (!existsSync(join(stage.cwd, "begun"))) await sleep(20);
    await stage.act("interrupt");
    await stage.server.end(stage.sessionId);
  },
  "a shell in the background that ends": async (stage) => {
    const command = "while [ ! -e go ]; do sleep 0.05; done; echo finished";
    const script = [
      { tools: [bash(command, { run_in_background: true })] },
      { text: "It runs." },
      { text: "It ended." },
    ];
    await stage.prompt(script);
    writeFileSync(join(stage.cwd, "go"), "");
    await stage.told("It ended.", 2);
    await stage.server.end(stage.sessionId);
  },
  "a shell in the background that is stopped": async (stage) => {
    const command = "echo begun; while :; do sleep 0.05; done";
    const script = [
      { tools: [bash(command, { run_in_background: true })] },
      { text: "It runs." },
      { text: "Stopped." },
    ];
    await stage.prompt(script);
    const { background } = await stage.check({ waitMs: 0 });
    await stage.act("stop_task", { taskId: background[0]?.id });
    await stage.told('"stopped"');
    await stage.told('"background":[]');
  },
};

/** Each turn has a process of its own. */
const PROCESSES: Scenarios = {
  "a session that goes on in a new process": async (stage) => {
    await stage.prompt([{ tools: [bash("echo kept")] }, { text: "Kept." }]);
    for (const { pid } of stage.processes()) process.kill(pid, "SIGTERM");
    await stage.isWithoutProcess();
    await stage.prompt([{ text: "Resumed." }]);
  },
  "a fork, and a return to an earlier message": async (stage) => {
    await stage.prompt([{ text: "One." }]);
    await stage.prompt([{ text: "Two." }]);
    const { events } = await stage.check({ waitMs: 0, responseMode: "full" });
    const at = events.find(({ data }) => JSON.stringify(data).includes('"text":"One."'))?.data["uuid"];
    const fork = await stage.prompt([{ text: "Three." }], { forkSession: true, resumeSessionAt: at });
    const lost = await stage.prompt([{ text: "Never." }], { resumeSessionAt: randomUUID() });
    const back = await stage.prompt([{ text: "Four." }], { resumeSessionAt: at });
    return [fork.result, lost.result, back.result, stage.conversation("Three."), stage.conversation("Four.")];
  },
};

/** Played with `acceptEdits` and file checkpoints. */
const EDITS: Scenarios = {
  "tools that fail": async (stage) => {
    const file = join(stage.cwd, "a");
    const edit = { name: "Edit", input: { file_path: file, old_string: "x", new_string: "y" } };
    const calls = [{ name: "NoSuchTool", input: {} }, read(join(stage.cwd, "none")), edit, { name: "Bash", input: {} }];
    await stage.prompt([...calls.map((tool) => ({ tools: [tool] })), { text: "All failed." }]);
  },
  "files that are put back": async (stage) => {
    const [a, b] = [join(stage.cwd, "a"), join(stage.cwd, "b")];
    writeFileSync(a, "one\ntwo\nthree\n");
    const steps = [read(a), write(a, "one\n2\nthree\n"), write(b)];
    await stage.prompt([...steps.map((tool) => ({ tools: [tool] })), { text: "Changed." }]);
    return [
      await stage.act("rewind", { dryRun: true }),
      await stage.act("rewind"),
      readFileSync(a, "utf8"),
      existsSync(b),
    ];
  },
};

const RULED: Scenarios = {
  "what the mode and the rules decide unasked": async (stage) => {
    const script = [
      { tools: [write(join(stage.cwd, "a"))] },
      { tools: [bash("touch b")] },
      { tools: [bash("rm b")] },
      { text: "Done." },
    ];
    await stage.prompt(script);
  },
};

const LIMITED: Scenarios = {
  "a limit on the turns": async (stage) => {
    await stage.prompt([{ tools: [bash("ls")] }, { tools: [bash("ls")] }, { text: "Never said." }]);
    await stage.prompt([{ text: "On." }]);
  },
};

const PLAN: Scenarios = {
  "a plan": async (stage) => {
    await stage.prompt([{ text: "I think." }]);
    const [, file = ""] = /"planFilePath":"([^"]+)"/.exec(stage.world.transcript(stage.sessionId)) ?? [];
    const show = { name: "ExitPlanMode", input: {} };
    const steps = [write(file, "# Plan\n"), show, show, write(join(stage.cwd, "a"))];
    await stage.prompt([...steps.map((tool) => ({ tools: [tool] })), { text: "Done." }]);
    await stage.answer([DENY, ALLOW]);
  },
};

const STRUCTURE: Scenarios = {
  "an answer with a structure": async (stage) => {
    const tool = { name: "StructuredOutput", input: { n: 4 } };
    await stage.prompt([{ tools: [tool] }, { text: "Four." }]);
  },
};

const schema = { type: "object", properties: { n: { type: "number" } }, required: ["n"] };

interface Session {
  readonly scenarios: Scenarios;
  readonly options?: object;
  /** Set if the order of the log is random. */
  readonly unordered?: boolean;
}

/** Sessions that are played; the log of each is compared. */
export const SESSIONS: Readonly<Record<string, Session>> = {
  "that asks": { scenarios: ASKED },
  "that is disturbed": { scenarios: DISTURBED },
  "that asks several things at once": { scenarios: AT_ONCE, unordered: true },
  "with Bash allowed": { scenarios: SHELLS, options: { allowedTools: ["Bash"] } },
  "of several processes": { scenarios: PROCESSES },
  "with edits accepted": {
    scenarios: EDITS,
    options: { permissionMode: "acceptEdits", advanced: { enableFileCheckpointing: true } },
  },
  "that asks nothing": {
    scenarios: RULED,
    options: { permissionMode: "dontAsk", allowedTools: ["Bash(touch:*)"], disallowedTools: ["Bash(rm:*)"] },
  },
  "with a limit on its turns": { scenarios: LIMITED, options: { maxTurns: 1 } },
  "that plans": { scenarios: PLAN, options: { permissionMode: "plan" } },
  "at the limits of its plan": {
    scenarios: AT_LIMITS,
    options: {
      disallowedTools: ["RemoteTrigger"],
      advanced: { env: { ANTHROPIC_API_KEY: "", CLAUDE_CODE_OAUTH_TOKEN: "scripted-plan" } },
    },
  },
  "that answers with a structure": {
    scenarios: STRUCTURE,
    options: { outputFormat: { type: "json_schema", schema } },
  },
};
