import { RawLive } from "./raw.mjs";
import { startServer } from "./server.mjs";
import { prompt } from "./world.mjs";

const MODES = ["minimal", "delta_compact", "full"];
const RAW = "raw: the messages of the SDK";

export const answers = {
  name: "answers",
  about: "what a caller reads and sends in a task of 10 tool calls and 2 approvals of 2,000 characters",
  rows: [
    ...MODES.map((mode) => ({ row: `read, ${mode}`, of: `read ${mode}`, base: RAW, unit: "bytes" })),
    ...MODES.map((mode) => ({
      row: `read beside what is approved, ${mode}`,
      of: `beside ${mode}`,
      unit: "bytes",
      ...(mode === "minimal" && { bound: "at most 2,560" }),
    })),
    ...MODES.map((mode) => ({ row: `calls, ${mode}`, of: `calls ${mode}`, unit: "calls" })),
    { row: "sent, without the prompt, each mode", of: "sent", unit: "bytes" },
    { row: "the list of tools, once", of: "tools", unit: "bytes" },
  ],
  // Nothing in it depends on how fast the machine is: once is enough.
  async run({ figures, progress, world }) {
    const server = await startServer(world);
    figures.note("tools", bytesOf((await server.tools()).tools));
    for (const mode of MODES) {
      progress(mode);
      const { calls, read, sent } = await supervise(server, mode, world.folder());
      figures.note(`read ${mode}`, read);
      figures.note(`beside ${mode}`, read - 2 * bytesOf(CONTENT));
      figures.note(`calls ${mode}`, calls);
      if (mode === MODES[0]) figures.note("sent", sent);
    }
    await server.close();
    const live = new RawLive(world, { allowedTools: ALLOWED });
    figures.note(RAW, bytesOf(await live.turn(TASK)));
    await live.close();
  },
};

const ALLOWED = ["Bash(seq *)"];
const bash = (command) => ({ name: "Bash", input: { command, description: `Run ${command}` } });
/** Eight calls that run unasked, with some lines of output, and two that ask. */
const COMMANDS = [8, 30, 2, 60].map((lines) => `seq ${String(lines)}`);
const TASK = prompt(
  ...COMMANDS.map((command) => ({ text: `I look at ${command}.`, tools: [bash(command)] })),
  { text: "Now I change something.", tools: [bash("touch a.txt")] },
  ...COMMANDS.map((command) => ({ text: `I look again at ${command}.`, tools: [bash(command)] })),
  { text: "And something else.", tools: [bash("touch b.txt")] },
  { text: "All is done: two files were written, and the numbers are as they were." },
);

/** As a calling model does it: start, wait for news, answer what is asked, until the turn has ended. */
async function supervise(server, responseMode, cwd) {
  const spent = { bytes: 0, calls: 0 };
  const call = async (tool, args) => {
    const { content, structuredContent } = await server.answer(tool, args);
    spent.bytes += bytesOf(args) + Buffer.byteLength(content[0].text);
    spent.calls += 1;
    return structuredContent;
  };
  const { nextCursor, sessionId } = await call("claude_code", { prompt: TASK, cwd, allowedTools: ALLOWED });
  const request = { sessionId, responseMode, waitMs: 45_000 };
  let answer = await call("claude_code_check", { action: "poll", ...request, cursor: nextCursor });
  while (!answer.result) {
    const [{ requestId }] = answer.actions;
    const decision = { action: "respond_permission", requestId, decision: "allow" };
    answer = await call("claude_code_check", { ...decision, ...request, cursor: answer.nextCursor });
  }
  return spent;
}

function bytesOf(value) {
  return Buffer.byteLength(JSON.stringify(value));
}
