// A line that says what went wrong and, where that can help, a button to try again.

import { html } from "htm/preact";

export function Problem({ text, again }) {
  return html`<p class="problem" role="alert">${text} ${again && html`<button onClick=${again}>Try again</button>`}</p>`;
}
