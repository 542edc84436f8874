// Texts that several modules use.

// time formats a time in the time zone of the browser, with the day unless that is today.
export function time(text) {
  const at = new Date(text);
  const today = at.toDateString() === new Date().toDateString();
  return at.toLocaleString([], { weekday: today ? undefined : "long", hour: "2-digit", minute: "2-digit" });
}

// sentence returns a reason of the server as a sentence, with times in the format of time.
export function sentence(text) {
  const local = text.replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, time);
  return local.charAt(0).toUpperCase() + local.slice(1) + (/[.!?]$/.test(local) ? "" : ".");
}
