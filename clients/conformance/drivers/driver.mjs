// Driver of clients/js: see package conformance for the line protocol.
import { createInterface } from "node:readline";
import { Client } from "../../js/index.js";
import { FileStore } from "../../js/node.js";

const print = (line) => process.stdout.write(JSON.stringify(line) + "\n");
const described = (error) => error && {
  name: error.name, message: error.message, permanent: Boolean(error.permanent), code: error.code ?? 0, status: error.status ?? 0,
};

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const config = JSON.parse((await lines.next()).value);
const abort = new AbortController();
let resume;
const resumed = new Promise((done) => { resume = done; });
(async () => {
  for await (const line of lines) {
    const { do: what } = JSON.parse(line);
    if (what === "stop") abort.abort();
    if (what === "resume") resume();
  }
})();

let failure = null;
try {
  const client = new Client({
    url: config.url, username: config.username, password: config.password, domain: config.domain,
    portalToken: config.portal_token, apiKey: config.api_key,
  });
  const items = client.subscribe({
    since: config.since, snapshot: config.snapshot, filters: config.filters, signal: abort.signal,
    store: config.store ? new FileStore(config.store) : undefined,
    retryMin: config.retry_min_ms, retryMax: config.retry_max_ms, silence: config.silence_ms,
    onStatus: ({ state, error, retryIn = 0 }) => print({ kind: "status", state, error: described(error), retry_in_ms: retryIn }),
  });
  for await (const { snapshot, event, cursor } of items) {
    if (snapshot) print({ kind: "snapshot", cursor: snapshot.cursor, agents: snapshot.agents.map((a) => a.agent_id) });
    else print({ kind: "event", id: event.id, cursor, facts: event.metadata?.facts });
    if (event && event.id === config.pause_at) await resumed;
  }
} catch (error) {
  failure = error;
}
print({ kind: "end", error: described(failure) });
process.exit(0);
