import { expect, it } from "vitest";
import { ShimConnection } from "../../src/claude/shim/connection.ts";
import { ShimmedProcess } from "../../src/claude/shim/shimmed-process.ts";
import { ECHO, useShims, write } from "../kit/shim/shim.ts";

const shims = useShims();

it("an owner that has let go of a process behind a shim cannot end the process any more", async () => {
  const shim = await shims.start();
  const connection = await ShimConnection.open(shim.socket, { daemon: "d1" });
  const [command = "", ...args] = ECHO;
  let process: ShimmedProcess | undefined;
  await new Promise<void>((resolve) => {
    process = ShimmedProcess.start(
      { connection, id: "p", epoch: 1, onStarted: () => resolve() },
      { command, args, env: {}, tag: "", record: "" },
    );
  });
  process!.letGo();
  expect(await process!.exit).toMatchObject({ isTaken: true });
  process!.endInput();
  process!.terminate();
  process!.killTree();
  await connection.list();
  const next = await shim.owner();
  await next.attach("p", 2, 0);
  write(next, "a", "still", 2);
  expect(await next.hasLines(1)).toEqual([[1, "got still"]]);
});
