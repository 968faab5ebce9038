/** What it has cost, and how long it has taken. */
export function NumbersView() {
  return <h1>Numbers</h1>;
}
