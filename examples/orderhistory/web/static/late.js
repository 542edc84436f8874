// Commands that the server has accepted and that the history does not show yet. A reload of the page keeps them.
import { request } from "./server.js";

const slot = "late";

// late is a list of {orderId, service, version} with what the command was: {of, restaurant}, and {sent, key} of an order.
export const late = () => JSON.parse(sessionStorage.getItem(slot)) ?? [];

const keep = (commands) => sessionStorage.setItem(slot, JSON.stringify(commands));
const isSame = (a, b) => a.orderId === b.orderId && a.service === b.service;

// expect remembers a command by the reply to it, unless the history shows it already.
export function expect({ orderId, service, version, shown }, command) {
  const accepted = { orderId, service, version, ...command };
  keep([...late().filter((other) => !isSame(other, accepted)), ...(shown ? [] : [accepted])]);
}

// settle asks the history, and forgets the commands that it shows.
export async function settle() {
  await Promise.all(late().map(async (command) => {
    const order = await request("GET", `/orders/${encodeURIComponent(command.orderId)}`).catch(() => undefined); // it may not have the order
    if (order?.versions[command.service] >= command.version) {
      keep(late().filter((other) => !isSame(other, command) || other.version > command.version));
    }
  }));
}
