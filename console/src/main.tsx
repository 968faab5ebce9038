// First, so that a token is gone from the address before anything else looks at it.
import { onLinkToken, takeLinkToken } from "./state/link-token.ts";
import "./style/base.css";
import "./style/controls.css";
import { render } from "preact";
import { App } from "./app.tsx";
import { arrive } from "./state/arrive.ts";

void arrive(takeLinkToken());
onLinkToken((token) => void arrive(token));

const root = document.getElementById("app");
if (root) render(<App />, root);
