import { blockingForms, DIRECT, QUERY } from "../support/blocking-forms.ts";
import { CLIENT_KINDS, type ClientKind } from "../support/connection.ts";
import { useWorld } from "../support/world.ts";

const world = useWorld({ agent: "stand-in" });

const withBoth = (kinds: readonly ClientKind[]) =>
  kinds.flatMap((kind) => [QUERY, DIRECT].map((tool) => [tool, kind, "stdio"] as const));

blockingForms(world, {
  forms: withBoth(CLIENT_KINDS),
  caller: withBoth(["modern", "legacy"]),
  chat: CLIENT_KINDS.map((kind) => [kind, "stdio"] as const),
  cancelled: [
    ["legacy", "stdio"],
    ["v1", "stdio"],
  ],
});
