/** All that waits for people. */
export function WaitingView() {
  return <h1>Waiting</h1>;
}
