// Answers questions by the site's own search: its worker, run outside of a browser. Reads {worker, index, questions} from stdin,
// writes for each question the pages found, best first.
const fs = require("fs");
const vm = require("vm");

const given = JSON.parse(fs.readFileSync(0, "utf-8"));
const replies = [];
let listen;
const scope = {
  console,
  postMessage: (message) => replies.push(message),
  addEventListener: (_, listener) => (listen = listener),
  importScripts: () => {},
};
scope.self = scope;
vm.runInNewContext(fs.readFileSync(given.worker, "utf-8"), scope);

const reply = async (type, data) => {
  listen({ data: { type, data } });
  while (!replies.length) await new Promise((done) => setTimeout(done, 1));
  return replies.shift();
};

(async () => {
  const index = JSON.parse(fs.readFileSync(given.index, "utf-8"));
  index.options = { suggest: true };
  await reply(0, index);
  const found = [];
  for (const question of given.questions) {
    const { data } = await reply(2, question);
    found.push(data.items.map((pages) => pages[0].location.split("#")[0]));
  }
  console.log(JSON.stringify(found.map((pages) => [...new Set(pages)])));
})();
