import { RawLive } from "./raw.mjs";
import { startServer } from "./server.mjs";
import { prompt } from "./world.mjs";

const MODES = ["minimal", "delta_compact", "full"];
const RAW = "raw: the messages of the SDK";

export const answers = {
  name: "answers",
  about: "bytes that a caller reads and sends in a task of 10 tool calls and 2 approvals of 2,000 characters",
  rows: [
    ...MODES.map((mode) => ({ row: `read, ${mode}`, of: `read ${mode}`, base: RAW, unit: "bytes" })),
    ...MODES.map((mode) => ({
      row: `read beside what is approved, ${mode}`,
      of: `beside ${mode}`,
      unit: "bytes",
      ...(mode === "minimal" && { atMostAlone: 2_560 }),
    })),
    ...MODES.map((mode) => ({ row: `calls, ${mode}`, of: `calls ${mode}`, unit: "calls", atMostAlone: 4 })),
    { row: "sent beside the prompt, minimal", of: "sent", unit: "bytes" },
    { row: "the list of tools, once", of: "tools", unit: "bytes", atMostAlone: 8_192 },
  ],
  // Runs one round, because no figure here depends on the speed of the machine.
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
/** Content of both files, shown in full in requests to approve, in every mode. */
const CONTENT = "All of this is to be written, and read before that. ".repeat(40).slice(0, 2_000);
const bash = (command) => ({ name: "Bash", input: { command, description: `Run ${command}` } });
const write = (file_path) => ({ name: "Write", input: { file_path, content: CONTENT } });
/** Eight calls that run without approval, with a few lines of output, and two calls that request approval. */
const COMMANDS = [8, 20, 2, 30].map((lines) => `seq ${String(lines)}`);
const TASK = prompt(
  ...COMMANDS.map((command) => ({ tools: [bash(command)] })),
  { text: "Now I write the first file.", tools: [write("a.txt")] },
  ...COMMANDS.map((command) => ({ tools: [bash(command)] })),
  { text: "And the second.", tools: [write("b.txt")] },
  { text: "All is done: two files were written, and the numbers are as they were." },
);

/** Acts like a calling model: starts a session, polls, and answers requests until the turn has ended. */
async function supervise(server, responseMode, cwd) {
  const spent = { calls: 0, read: 0, sent: 0 };
  const call = async (tool, { prompt: task, ...args }) => {
    const { content, structuredContent } = await server.answer(tool, { ...args, ...(task && { prompt: task }) });
    spent.read += Buffer.byteLength(content[0].text);
    spent.sent += bytesOf(args);
    spent.calls += 1;
    return structuredContent;
  };
  const { nextCursor, sessionId } = await call("claude_code", { prompt: TASK, cwd, allowedTools: ALLOWED });
  const request = { sessionId, waitMs: 45_000, ...(responseMode !== "minimal" && { responseMode }) };
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
