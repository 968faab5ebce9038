import { expect, it } from "vitest";
import type { PermissionMode } from "../../src/domain/permission.ts";
import { Walk } from "../kit/step/walk.ts";

it.each<[asked: PermissionMode, answered: object, recorded: PermissionMode]>([
  ["plan", { permissionMode: "plan" }, "plan"],
  ["plan", { permissionMode: "default" }, "default"],
  // An older Claude Code answers `{}`; `bypassPermissions` and unknown modes in an answer are never recorded.
  ["plan", {}, "plan"],
  ["plan", { permissionMode: "bypassPermissions" }, "plan"],
  ["plan", { permissionMode: "unknown" }, "plan"],
])("a session that is asked for the mode %s and answered with %j records %s", (permissionMode, data, recorded) => {
  const walk = new Walk({}).prompt("p1").hear({ type: "ready" });
  const request = { do: "configure" as const, permissionMode };
  const outcome = { ok: true as const, data: { ...data } };
  walk.take({ type: "controlled", at: walk.at, commandId: "c1", by: "ann", request, outcome });
  expect(walk.state.chosen).toMatchObject({ permissionMode: recorded });
});
