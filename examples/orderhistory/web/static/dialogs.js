// This module asks a visitor for the dishes of an order, or for the reason why it ends.
import { act } from "./server.js";
import { isolated } from "./text.js";

const $ = (id) => document.getElementById(id);

// ask opens a dialog, and closes it when its form was sent. It shows errors in the dialog. A note is
// shown from the beginning.
function ask(name, title, label, send, note = "") {
  const dialog = $(`${name}-dialog`), form = $(`${name}-form`), message = dialog.querySelector(".message");
  $(`${name}-title`).replaceChildren(...title);
  $(`${name}-send`).textContent = label;
  message.textContent = note;
  message.hidden = !note;
  dialog.querySelector(".close").onclick = () => dialog.close();
  form.onsubmit = (event) => {
    event.preventDefault();
    act(form, message, async () => {
      await send(form.elements);
      dialog.close();
    });
  };
  dialog.showModal();
}

// askForOrder asks for an order. If an earlier one was sent without a reply, it can be sent again.
export function askForOrder(unanswered, send) {
  const note = unanswered && "There was no answer to this order. Send it again: it is placed only once.";
  askForDishes(unanswered?.lines, unanswered?.restaurant ?? "", ["Place an order"], "Send the order", send, note);
}

// askForChange asks for other dishes of an order.
export function askForChange({ restaurant, lines }, send) {
  askForDishes(lines, undefined, ["Change the order from ", isolated(restaurant)], "Send the change", ({ lines }) => send({ lines }));
}

function askForDishes(lines, restaurant, title, label, send, note) {
  const field = $("order-form").elements.restaurant;
  field.value = restaurant ?? "";
  field.disabled = field.closest("label").hidden = restaurant === undefined;
  $("dishes").replaceChildren(...(lines ?? [undefined]).map(dish));
  $("more").onclick = () => {
    $("dishes").append(dish());
    $("dishes").lastElementChild.elements.name.focus();
  };
  ask("order", title, label, () => send({ restaurant: field.value.trim(), lines: [...$("dishes").children].map(lineOf) }), note);
}

function dish(line) {
  const element = $("dish").content.firstElementChild.cloneNode(true);
  const { name, quantity, price } = element.elements;
  if (line) {
    name.value = line.name;
    quantity.value = line.quantity;
    price.value = (line.priceCents / 100).toFixed(2);
  }
  element.querySelector(".remove").onclick = () => {
    element.remove();
    $("more").focus();
  };
  return element;
}

const lineOf = ({ elements: { name, quantity, price } }) =>
  ({ name: name.value.trim(), quantity: quantity.valueAsNumber, priceCents: Math.round(price.valueAsNumber * 100) });

// askForEnd asks for the reason why an order ends. The reason is optional.
export function askForEnd(title, label, send) {
  $("end-form").elements.reason.value = "";
  ask("end", title, label, ({ reason }) => send(reason.value.trim() ? { reason: reason.value.trim() } : undefined));
}
