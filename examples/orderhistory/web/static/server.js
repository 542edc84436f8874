// Talking to the server: requests, and the events by which it tells of changes.

const patience = 30_000; // ms for a reply
const again = 2_000; // ms until a stream that was refused is tried again

// Problem is what the server refuses, in its own words. Its status is 0 where there is no answer.
export class Problem extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }

  // open reports whether the request may have taken effect, or may yet.
  get open() { return this.status === 0 || this.status === 408 || this.status >= 500; }
}

// newKey returns an idempotency key.
export const newKey = () => [...crypto.getRandomValues(new Uint32Array(4))].join("-");

// request returns the reply, or throws a Problem. A command with a key takes effect once, however often it is sent.
export async function request(method, path, { body, key } = {}) {
  const advice = key ? "Send it again: it takes effect only once." : "Look at what has come of it before you try again.";
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

// act does what a control asks for, once at a time, and says what went wrong.
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

// watch calls changed at each event of the name, the first of which comes at once, and connected with whether the server is there. A page that
// nobody sees is not kept up to date, as a browser has few connections to a server. The function that it returns ends it.
export function watch(path, name, { changed, connected }) {
  let source, timer;

  function close() {
    clearTimeout(timer);
    source?.close();
  }

  function open() {
    close();
    if (document.hidden) return;
    source = new EventSource(path);
    source.addEventListener(name, () => {
      connected(true);
      changed();
    });
    source.onerror = () => {
      connected(false);
      // A browser tries again by itself where there is no answer, but not where the answer is no.
      if (source.readyState === EventSource.CLOSED) timer = setTimeout(open, again);
    };
  }

  document.addEventListener("visibilitychange", open);
  open();
  return () => {
    document.removeEventListener("visibilitychange", open);
    close();
  };
}
