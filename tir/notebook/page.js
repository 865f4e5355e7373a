// The explorer on a page of its own: what a notebook does for the view (`get`, `on`, `send`) by requests to the server.

const token = new URL(location.href).searchParams.get("token");
const { default: explorer } = await import(`./explorer.js?token=${encodeURIComponent(token)}`);

let view = null;
const drawn = new Set();

async function send(message) {
  try {
    const answer = await fetch("./", {
      method: "POST", headers: { "Content-Type": "application/json", "X-Tir-Token": token }, body: JSON.stringify(message),
    });
    if (!answer.ok) throw new Error(await answer.text());
    const made = await answer.json();
    if (view === null || made.answered > view.answered) view = made; // answers may overtake each other
  } catch (error) {
    const why = error instanceof TypeError ? "the server does not answer; is the command that started it still running?" : error.message;
    view = { ...view, error: why, lost: true };
  }
  for (const draw of drawn) draw();
}

const model = { get: () => view, on: (_, draw) => drawn.add(draw), off: (_, draw) => drawn.delete(draw), send };
const el = document.getElementById("explorer");
await send({ do: "refresh" });
if (view.answered) explorer.render({ model, el });
else el.textContent = view.error;
