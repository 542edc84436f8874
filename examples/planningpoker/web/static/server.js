// Talking to the server: requests, and the events that it sends.

import { sentence } from "./words.js";

const patience = 30_000; // ms for a reply; the server gives up by itself at about that time
const silence = 120_000; // ms without an event, until a stream is opened anew
const again = 2_000; // ms until a stream that was refused is tried again

// Problem is what the server refuses, in its own words. Its status is 0 where there is no answer.
export class Problem extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

export async function request(method, path, body) {
  let response;
  try {
    response = await fetch(path, {
      method,
      headers: body && { "Content-Type": "application/json" },
      body: body && JSON.stringify(body),
      signal: AbortSignal.timeout(patience),
    });
  } catch {
    throw new Problem(0, "The server does not answer. Check whether it was done before you try again.");
  }
  const reply = await response.json().catch(() => ({}));
  if (!response.ok) throw new Problem(response.status, sentence(reply.detail ?? `the server answers with status ${response.status}`));
  return reply;
}

// listen calls the handlers with the data of the events of their names, connected with "yes" or "no" for whether the stream is there, and
// refused with the problem for which the server refuses it for good. why is where to ask for that, as a browser does not tell
// what an EventSource was refused for. The function that it returns ends it.
export function listen(path, { handlers, connected, refused, why = path }) {
  let source, watchdog, ended;

  function open() {
    if (ended) return;
    clearTimeout(watchdog);
    source?.close();
    source = new EventSource(path);
    source.onopen = alive;
    source.onerror = lost;
    for (const [name, handle] of Object.entries(handlers)) {
      source.addEventListener(name, (event) => {
        alive();
        handle(JSON.parse(event.data));
      });
    }
  }

  function alive() {
    connected("yes");
    // A connection that has gone without a word, as when a phone slept, is no error to the browser, and what the server sends to keep
    // one alive is not seen here.
    clearTimeout(watchdog);
    watchdog = setTimeout(open, silence);
  }

  async function lost() {
    if (ended) return;
    connected("no");
    clearTimeout(watchdog);
    if (source.readyState !== EventSource.CLOSED) return; // the browser tries again by itself
    const problem = await request("GET", why).then(() => null, (problem) => problem);
    if (problem?.status === 404 || problem?.status === 410) refused(problem); // anything else, such as too many requests, passes
    else watchdog = setTimeout(open, again);
  }

  function end() {
    ended = true;
    clearTimeout(watchdog);
    source.close();
  }

  open();
  return end;
}
