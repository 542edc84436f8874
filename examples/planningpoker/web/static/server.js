// This module talks to the server: it sends requests and receives events.

import { sentence } from "./words.js";

const patience = 30_000; // ms for a reply; the time limit of the server is about the same
const silence = 120_000; // ms without an event, until a stream is opened again
const again = 2_000; // ms until a refused stream is tried again

// A browser has six connections to a server with HTTP/1.1, for all its windows together. An open
// stream takes one of them. So a hidden tab has no stream, and of the visible windows only the few
// that were used last have one.
const mostStreams = 4;

// Problem is an error of the server, with its text. Its status is 0 if there is no reply.
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

// listen calls the handlers with the data of the events of their names, while the page is visible.
// It calls connected with "yes", "no" or "paused". A paused window lets other windows have the
// connection until it is used again. It calls refused with the problem if the server refuses the
// stream permanently. why is the path for a query of that problem, since a browser does not report
// why an EventSource was refused. listen returns a function that ends it.
export function listen(path, { handlers, connected, refused, why = path }) {
  const windows = new BroadcastChannel("streams"); // of this browser
  const self = Math.random();
  const newer = new Set(); // windows that have opened a stream after this one
  let source, watchdog, ended;

  function open() {
    close();
    newer.clear();
    windows.postMessage({ window: self, open: true });
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

  function close() {
    clearTimeout(watchdog);
    if (!source) return;
    source.close();
    source = undefined;
    windows.postMessage({ window: self, open: false });
  }

  function follow() {
    if (document.hidden) close();
    else if (!source) open();
  }

  windows.onmessage = ({ data }) => {
    if (data.open) newer.add(data.window);
    else newer.delete(data.window);
    if (!source || newer.size < mostStreams) return;
    close();
    connected("paused");
  };

  function alive() {
    connected("yes");
    // A silently lost connection, for example after a phone slept, is not an error for the browser.
    // Comments that keep a connection alive are not visible here.
    clearTimeout(watchdog);
    watchdog = setTimeout(open, silence);
  }

  async function lost() {
    const lostSource = source;
    connected("no");
    clearTimeout(watchdog);
    if (source.readyState !== EventSource.CLOSED) return; // the browser tries again by itself
    const problem = await request("GET", why).then(() => null, (problem) => problem);
    if (source !== lostSource) return; // closed in the meantime
    if (problem?.status === 404 || problem?.status === 410) refused(problem); // other errors, such as too many requests, are temporary
    else watchdog = setTimeout(open, again);
  }

  const occasions = [[document, "visibilitychange", follow], [window, "focus", follow], [window, "pageshow", follow], [window, "pagehide", close]];
  for (const [target, event, handler] of occasions) target.addEventListener(event, handler);

  function end() {
    if (ended) return;
    ended = true;
    close();
    for (const [target, event, handler] of occasions) target.removeEventListener(event, handler);
    windows.close();
  }

  follow();
  return end;
}
