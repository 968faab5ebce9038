/** All sessions, now and before. */
export function SessionsView() {
  return <h1>Sessions</h1>;
}
