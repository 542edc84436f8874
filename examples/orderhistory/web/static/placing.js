// Placing an order once, however often it is sent. An order goes with an idempotency key, which is
// kept, also over a reload of the page, while the server has not answered, and then until the
// history shows the order.
import { late, remember } from "./late.js";
import { newKey, Problem, request } from "./server.js";

// unanswered is the order of a consumer that was sent and not answered: {order, key}, or null.
export const unanswered = (consumer) => JSON.parse(sessionStorage.getItem(slot(consumer)));

const slot = (consumer) => `unanswered/${consumer}`;

// place sends an order, or throws the Problem why it is not placed or not known to be.
export async function place(consumer, order) {
  const before = unanswered(consumer), sent = JSON.stringify([consumer, order]);
  const key = before?.key ?? late().find((command) => command.sent === sent)?.key ?? newKey();
  sessionStorage.setItem(slot(consumer), JSON.stringify({ order, key }));
  let reply;
  try {
    reply = await request("POST", "/orders?wait=2", { body: { consumerId: consumer, ...order }, key });
  } catch (problem) {
    if (!problem.open) sessionStorage.removeItem(slot(consumer));
    if (problem.status === 409 && before) {
      throw new Problem(409, "The order that you sent before was accepted. To place this one as well, send it again.");
    }
    throw problem;
  }
  sessionStorage.removeItem(slot(consumer));
  remember(reply, { consumer, of: "Your order from", restaurant: order.restaurant, sent, key });
}
