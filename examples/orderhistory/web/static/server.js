// This module talks to the server: it sends requests and receives events about changes.

const patience = 30_000; // ms for a reply
const again = 2_000; // ms until a refused stream is tried again

// Problem is an error of the server, with its text. Its status is 0 if there is no reply.
export class Problem extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }

  // open reports whether the request may have taken effect, or may do so later.
  get open() { return this.status === 0 || this.status === 408 || this.status >= 500; }
}

// newKey returns an idempotency key.
export const newKey = () => [...crypto.getRandomValues(new Uint32Array(4))].join("-");

// request returns the reply, or throws a Problem. A command with a key takes effect once, however
// often it is sent.
export async function request(method, path, { body, key } = {}) {
  const advice = key ? "Send it again: it takes effect only once."
    : method === "GET" ? "Try again." : "Check whether it was done before you try again.";
  let response;
  try {
    response = await fetch(path, {
      method,
      headers: { ...(body && { "Content-Type": "application/json" }), ...(key && { "Idempotency-Key": key }) },
      body: body && JSON.stringify(body),
      signal: AbortSignal.timeout(patience),
    });
  } catch {
    throw new Problem(0, `The server does not answer. ${advice}`);
  }
  const reply = await response.json().catch(() => ({}));
  if (response.ok) return reply;
  if (response.status === 504) throw new Problem(504, `The database does not answer. ${advice}`);
  const reason = reply.detail ?? `the server answers with status ${response.status}`;
  throw new Problem(response.status, reason.charAt(0).toUpperCase() + reason.slice(1) + (/[.!?]$/.test(reason) ? "" : "."));
}

// act executes the action of a control, one at a time, and shows errors.
export async function act(control, message, what) {
  if (control.getAttribute("aria-busy") === "true") return;
  control.setAttribute("aria-busy", "true");
  message.hidden = true;
  try {
    await what();
  } catch (problem) {
    message.textContent = problem.message;
    message.hidden = false;
  } finally {
    control.removeAttribute("aria-busy");
  }
}

// watch calls changed at each event of the name, and connected(true or false) when the connection
// changes. The function that it returns ends it.
//
// A browser has few connections to a server, and a stream takes one. So one window for each path
// holds the stream and forwards events to the others, and a hidden page does not watch.
export function watch(path, name, { changed, connected }) {
  const handlers = {
    changed() {
      connected(true);
      changed();
    },
    lost: () => connected(false),
  };
  let channel, leave;

  function end() {
    leave?.();
    channel?.close();
    leave = channel = undefined;
  }

  function begin() {
    end();
    if (document.hidden) return;
    const here = channel = new BroadcastChannel(path);
    channel.onmessage = ({ data }) => handlers[data]();
    leave = alone(path, () => stream(path, name, (what) => {
      handlers[what]();
      here.postMessage(what);
    }));
    changed(); // something may have changed meanwhile
  }

  document.addEventListener("visibilitychange", begin);
  begin();
  return () => {
    document.removeEventListener("visibilitychange", begin);
    end();
  };
}

// alone calls begin when no other window of this browser holds the name. Both begin and alone return
// a function that ends it.
function alone(name, begin) {
  if (!navigator.locks) return begin(); // browsers have locks only on secure connections and for the same machine
  const waiting = new AbortController();
  let end = () => waiting.abort();
  navigator.locks.request(name, { signal: waiting.signal }, () => new Promise((release) => {
    const stop = begin();
    end = () => {
      stop();
      release();
    };
  })).catch(() => {}); // ended before it began
  return () => end();
}

// stream calls tell("changed") at each event, the first of which arrives at once, and tell("lost")
// while the server is not reachable. It returns a function that ends it.
function stream(path, name, tell) {
  let source, timer;
  function open() {
    source = new EventSource(path);
    source.addEventListener(name, () => tell("changed"));
    source.onerror = () => {
      tell("lost");
      // A browser tries again by itself if there is no reply, but not if the server refuses.
      if (source.readyState === EventSource.CLOSED) timer = setTimeout(open, again);
    };
  }
  open();
  return () => {
    clearTimeout(timer);
    source.close();
  };
}
