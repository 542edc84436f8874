// Commands that the server has accepted and that the history does not show yet. A reload of the
// page keeps them.
import { request } from "./server.js";

const slot = "late";
const forgotten = 300_000; // ms; what the history does not show by then it may never show, as after a restart with another database

// late is a list of {orderId, service, version, at} with what the command was: {consumer, of,
// restaurant}, and {sent, key} of an order.
export const late = () => (JSON.parse(sessionStorage.getItem(slot)) ?? []).filter(({ at }) => Date.now() - at < forgotten);

const keep = (commands) => sessionStorage.setItem(slot, JSON.stringify(commands));
const isSame = (a, b) => a.orderId === b.orderId && a.service === b.service;

// remember keeps a command by the reply to it, unless the history shows it already.
export function remember({ orderId, service, version, shown }, command) {
  const accepted = { orderId, service, version, at: Date.now(), ...command };
  keep([...late().filter((other) => !isSame(other, accepted)), ...(shown ? [] : [accepted])]);
}

// forgetShown asks the history, and forgets the commands that it shows.
export async function forgetShown() {
  await Promise.all(late().map(async (command) => {
    const order = await request("GET", `/orders/${encodeURIComponent(command.orderId)}`).catch(() => undefined); // it may not have the order
    if (order?.versions[command.service] >= command.version) {
      keep(late().filter((other) => !isSame(other, command) || other.version > command.version));
    }
  }));
}
