/** A new session. */
export function StartView() {
  return <h1>New session</h1>;
}
