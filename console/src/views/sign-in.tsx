import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { Mark } from "../parts/mark.tsx";
import { ApiProblem } from "../net/api.ts";
import { Problem } from "../parts/problem.tsx";
import { signInProblem } from "../state/sign-in.ts";
import { signIn, hasExpired } from "../state/me.ts";
import { classNames } from "../parts/class-names.ts";
import styles from "./sign-in.module.css";

export function SignInView() {
  const field = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => field.current?.focus(), []);
  const [token, setToken] = useState("");
  const [isPending, setPending] = useState(false);
  const [problem, setProblem] = useState<unknown>();
  const send = async () => {
    if (isPending) return;
    setPending(true);
    setProblem(undefined);
    signInProblem.value = undefined;
    try {
      await signIn(token.trim());
    } catch (error) {
      setProblem(clarify(error));
      setPending(false);
    }
  };
  return (
    <main class={styles["page"]}>
      <Mark />
      <h1>Sign in to claude-agents-mcp</h1>
      <p class="soft">Watch, steer and answer the Claude Code sessions of this server.</p>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void send();
        }}
      >
        <label htmlFor="token">Access token</label>
        <input
          ref={field}
          id="token"
          type="password"
          autocomplete="current-password"
          spellcheck={false}
          required
          value={token}
          aria-describedby="token-where"
          onInput={({ currentTarget }) => setToken(currentTarget.value)}
        />
        {hasExpired.value && !problem && <Problem of={EXPIRED} what="You were signed out" />}
        <Problem of={problem ?? clarify(signInProblem.value)} what="Not signed in" />
        <button type="submit" class="primary" aria-busy={isPending} aria-disabled={isPending}>
          Sign in
        </button>
      </form>
      <div id="token-where" class={classNames(styles, "where", "soft")}>
        <p>The server printed its token when it first started. If it is not your server, ask its operator.</p>
        <p>
          On the machine where the server runs, <code>claude-agents-mcp console</code> prints an address that signs you
          in.
        </p>
      </div>
    </main>
  );
}

const EXPIRED = new Error(
  "The server no longer accepts your token: it has expired or was revoked. Sign in with another one.",
);

/** Replaces the server's message for a 401, which is written for programs. */
function clarify(error: unknown): unknown {
  if (!(error instanceof ApiProblem) || error.status !== 401) return error;
  return new Error(
    "The server does not know this token. Check that you copied all of it and that it is the current one.",
  );
}
