import { amount } from "../kit/runner/amount.ts";
import { blockingForms, DIRECT, QUERY, SHOWN, type Rows } from "../kit/people/blocking-forms.ts";
import { CLIENT_KINDS, type ClientKind } from "../kit/clients/connection.ts";
import { useWorld } from "../kit/world.ts";

/** Each tool with each kind of client over stdio; rows that `npm test` shows over any transport run only with AMOUNTS=full. */

const world = useWorld({ agent: "stand-in" });

const without = <T extends readonly string[]>(shown: readonly T[], rows: readonly T[]): readonly T[] =>
  amount(0, 1) === 1
    ? rows
    : rows.filter((row) => !shown.some((each) => each.slice(0, -1).every((of, at) => of === row[at])));
const withBoth = (kinds: readonly ClientKind[]) =>
  kinds.flatMap((kind) => [QUERY, DIRECT].map((tool): Rows["forms"][number] => [tool, kind, "stdio"]));
const over = <T extends ClientKind>(kinds: readonly T[]) => kinds.map((kind) => [kind, "stdio"] as const);

blockingForms(world, {
  forms: without(SHOWN.forms, withBoth(CLIENT_KINDS)),
  caller: without(SHOWN.caller, withBoth(["modern", "legacy"])),
  chat: without<Rows["chat"][number]>(SHOWN.chat, over(CLIENT_KINDS)),
  cancelled: without<Rows["cancelled"][number]>(SHOWN.cancelled, over(["legacy", "v1"])),
});
