import { randomUUID } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { z } from "zod";

import { scriptTag } from "../../src/demo/model/script.ts";
import type { Script, Stage } from "./stage.ts";

const write = (file: string, content = "hello\n") => ({ name: "Write", input: { file_path: file, content } });
const bash = (command: string, more: object = {}) => ({ name: "Bash", input: { command, ...more } });
const read = (file: string) => ({ name: "Read", input: { file_path: file } });
const agent = (script: Script, more: object = {}) => ({
  name: "Agent",
  input: { description: "help", subagent_type: "general-purpose", prompt: `Help. ${scriptTag(script)}`, ...more },
});

const ALLOW = { decision: "allow" };
const DENY = { decision: "deny", denyMessage: "Not that one." };

/** Scenarios in which it is chance what comes first. */
export const UNORDERED = new Set(["requests at the same time"]);

/** What Claude Code does that our own code depends on. Each is one session, whose log is compared. */
export const SCENARIOS: Readonly<Record<string, (stage: Stage) => Promise<unknown>>> = {
  "two turns of text in one process": async (stage) => {
    await stage.start([{ text: ["One, ", "two, ", "three."] }]);
    await stage.reply([{ thinking: "Hm.", text: "Four.", usage: { input_tokens: 1234, output_tokens: 77 } }]);
  },
  "tools that run unasked": async (stage) => {
    writeFileSync(join(stage.cwd, "a.txt"), "one\ntwo\n");
    const tools = [read(join(stage.cwd, "a.txt")), bash("echo out; echo err >&2"), bash("ls nothing-there")];
    await stage.start([...tools.map((tool) => ({ tools: [tool] })), { text: "Looked." }]);
  },
  "files written and changed, allowed": async (stage) => {
    const file = join(stage.cwd, "a.txt");
    const edit = { name: "Edit", input: { file_path: file, old_string: "hello", new_string: "good day" } };
    await stage.start([
      { tools: [write(file)] },
      { tools: [edit] },
      { tools: [write(file, "new\n")] },
      { text: "Done." },
    ]);
    await stage.answer([ALLOW]);
  },
  "a request denied, and one with another input": async (stage) => {
    const [a, b] = [join(stage.cwd, "a"), join(stage.cwd, "b")];
    await stage.start([{ tools: [write(a)] }, { tools: [bash("touch x")] }, { text: "Done." }]);
    const updatedInput = { command: `touch ${b}` };
    await stage.answer([DENY, { ...ALLOW, permissionOptions: { updatedInput } }]);
  },
  "a request denied with an interrupt, and a turn after it": async (stage) => {
    await stage.start([{ tools: [write(join(stage.cwd, "a"))] }, { text: "Never said." }]);
    await stage.answer([{ ...DENY, interrupt: true }]);
    await stage.reply([{ text: "On." }]);
  },
  "requests at the same time": async (stage) => {
    const files = ["one", "two", "three"].map((name) => join(stage.elsewhere, name));
    for (const file of files) writeFileSync(file, "text\n");
    await stage.start([{ tools: files.map(read) }, { text: "Read." }], { waitMs: 0 });
    await stage.told("three", 2);
    await stage.answer([ALLOW]);
  },
  "a question": async (stage) => {
    const options = ["red", "blue"].map((label) => ({ label, description: `It is ${label}.` }));
    const questions = [{ question: "Which colour?", header: "Colour", multiSelect: false, options }];
    await stage.start([{ tools: [{ name: "AskUserQuestion", input: { questions } }] }, { text: "Asked." }]);
    await stage.answer([{ answers: { "Which colour?": "blue" } }]);
  },
  "an interrupt while it waits for the model": async (stage) => {
    await stage.start([{ gateBefore: stage.gate("never"), text: "Never said." }], { waitMs: 0 });
    await stage.requested();
    await stage.act("interrupt");
    await stage.server.end(stage.sessionId);
    await stage.reply([{ text: "On." }]);
  },
  "an interrupt while something is asked": async (stage) => {
    await stage.start([{ tools: [write(join(stage.cwd, "a"))] }, { text: "Never said." }]);
    await stage.act("interrupt");
    await stage.server.end(stage.sessionId);
    await stage.reply([{ text: "On." }]);
  },
  "an interrupt while a command runs": async (stage) => {
    const command = "touch begun; while :; do sleep 0.05; done";
    await stage.start([{ tools: [bash(command)] }, { text: "Never said." }], { waitMs: 0, allowedTools: ["Bash"] });
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
    await stage.start(script, { allowedTools: ["Bash"] });
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
    await stage.start(script, { allowedTools: ["Bash"] });
    const { background } = await stage.check({ waitMs: 0 });
    await stage.act("stop_task", { taskId: background[0]?.id });
    await stage.told('"stopped"');
    await stage.told('"background":[]');
  },
  "a subagent in the background that asks": async (stage) => {
    const gate = stage.gate("agent");
    const helper = [{ gateBefore: gate, tools: [write(join(stage.cwd, "by-agent"))] }, { text: "Helped." }];
    const script = [{ tools: [agent(helper)] }, { text: "It is on its way." }, { text: "All is done." }];
    await stage.start(script, { waitMs: 0 });
    await stage.told('"result":"It is on its way."');
    stage.world.model.release(gate);
    await stage.answer([ALLOW]);
  },
  "a message that joins a turn": async (stage) => {
    const gate = stage.gate("steer");
    await stage.start([{ gateBefore: gate, tools: [bash("ls")] }, { text: "Steered." }], { waitMs: 0 });
    await stage.requested();
    await stage.reply([{ text: "By the second." }], { whenBusy: "steer", waitMs: 0 });
    stage.world.model.release(gate);
    await stage.server.end(stage.sessionId);
  },
  "an API error that no retry helps": async (stage) => {
    await stage.start([{ error: { status: 400, message: "No." }, times: 20 }]);
    await stage.reply([{ error: { status: 403, message: "Forbidden." }, times: 20 }]);
    await stage.reply([{ error: { status: 401, message: "This key opens nothing." }, times: 20 }]);
    await stage.reply([{ text: "On." }]);
  },
  "an API error that a retry helps, and one that none does": async (stage) => {
    await stage.start([{ error: { status: 529 }, text: "Through." }]);
    await stage.reply([{ error: { status: 429 }, times: 20 }]);
  },
  "a limit on the turns": async (stage) => {
    await stage.start([{ tools: [bash("ls")] }, { tools: [bash("ls")] }, { text: "Never said." }], { maxTurns: 1 });
    await stage.reply([{ text: "On." }]);
  },
  "a session that goes on in a new process": async (stage) => {
    await stage.start([{ tools: [bash("echo kept")] }, { text: "Kept." }]);
    for (const { pid } of stage.processes()) process.kill(pid, "SIGTERM");
    await stage.isWithoutProcess();
    await stage.reply([{ text: "Resumed." }]);
  },
  "another model and another mode": async (stage) => {
    await stage.start([{ text: "One." }]);
    await stage.act("set_model", { model: "haiku" });
    await stage.act("set_permission_mode", { permissionMode: "acceptEdits" });
    await stage.reply([{ tools: [write(join(stage.cwd, "a"))] }, { tools: [bash("touch b")] }, { text: "Two." }]);
  },
  "what the mode and the rules decide unasked": async (stage) => {
    const script = [
      { tools: [write(join(stage.cwd, "a"))] },
      { tools: [bash("touch b")] },
      { tools: [bash("rm b")] },
      { text: "Done." },
    ];
    await stage.start(script, {
      permissionMode: "dontAsk",
      allowedTools: ["Bash(touch:*)"],
      disallowedTools: ["Bash(rm:*)"],
    });
  },
  "a plan": async (stage) => {
    await stage.start([{ text: "I think." }], { permissionMode: "plan" });
    const [, file = ""] = /"planFilePath":"([^"]+)"/.exec(stage.world.transcript(stage.sessionId)) ?? [];
    const show = { name: "ExitPlanMode", input: {} };
    const steps = [write(file, "# Plan\n"), show, show, write(join(stage.cwd, "a"))];
    await stage.reply([...steps.map((tool) => ({ tools: [tool] })), { text: "Done." }]);
    await stage.answer([DENY, ALLOW]);
  },
  "tools that fail": async (stage) => {
    const file = join(stage.cwd, "a");
    const edit = { name: "Edit", input: { file_path: file, old_string: "x", new_string: "y" } };
    const calls = [{ name: "NoSuchTool", input: {} }, read(join(stage.cwd, "none")), edit, { name: "Bash", input: {} }];
    await stage.start([...calls.map((tool) => ({ tools: [tool] })), { text: "All failed." }], {
      permissionMode: "acceptEdits",
    });
  },
  "allowed for the session": async (stage) => {
    const script = [{ tools: [bash("touch a")] }, { tools: [bash("touch b")] }, { text: "Done." }];
    await stage.start(script);
    await stage.answer([{ decision: "allow_for_session" }]);
  },
  "an answer with a structure": async (stage) => {
    const schema = { type: "object", properties: { n: { type: "number" } }, required: ["n"] };
    const tool = { name: "StructuredOutput", input: { n: 4 } };
    await stage.start([{ tools: [tool] }, { text: "Four." }], { outputFormat: { type: "json_schema", schema } });
  },
  "files that are put back": async (stage) => {
    const [a, b] = [join(stage.cwd, "a"), join(stage.cwd, "b")];
    writeFileSync(a, "one\ntwo\nthree\n");
    const options = { permissionMode: "acceptEdits", advanced: { enableFileCheckpointing: true } };
    const steps = [read(a), write(a, "one\n2\nthree\n"), write(b)];
    await stage.start([...steps.map((tool) => ({ tools: [tool] })), { text: "Changed." }], options);
    return [
      await stage.act("rewind", { dryRun: true }),
      await stage.act("rewind"),
      readFileSync(a, "utf8"),
      existsSync(b),
    ];
  },
  "a fork, and a return to an earlier message": async (stage) => {
    await stage.start([{ text: "One." }]);
    await stage.reply([{ text: "Two." }]);
    const { events } = await stage.check({ waitMs: 0, responseMode: "full" });
    const at = events.find(({ data }) => JSON.stringify(data).includes('"text":"One."'))?.data["uuid"];
    const fork = await stage.reply([{ text: "Three." }], { forkSession: true, resumeSessionAt: at });
    const lost = await stage.reply([{ text: "Never." }], { resumeSessionAt: randomUUID() });
    const back = await stage.reply([{ text: "Four." }], { resumeSessionAt: at });
    return [fork.result, lost.result, back.result, stage.conversation("Three."), stage.conversation("Four.")];
  },
  "what a session has used, and what a shell has written": async (stage) => {
    const loop = bash("echo begun; while [ ! -e go ]; do sleep 0.05; done", { run_in_background: true });
    await stage.start([{ tools: [loop] }, { text: "It runs." }, { text: "It ended." }]);
    const { background } = await stage.check({ waitMs: 0 });
    const taskId = background[0]?.id;
    const begun = async () => JSON.stringify(await stage.act("task_output", { taskId })).includes("begun");
    while (!(await begun())) await sleep(20);
    const { usage } = z.object({ usage: z.looseObject({}) }).parse(await stage.act("usage"));
    const { context: _, ...used } = usage;
    return [await stage.act("task_output", { taskId }), used];
  },
};
