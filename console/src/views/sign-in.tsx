/** Who are you? */
export function SignInView() {
  return <h1>Sign in</h1>;
}
