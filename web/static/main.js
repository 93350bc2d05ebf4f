/** Creates the parts of the board and connects them. */
import { Admin } from "./admin.js";
import { Agents, stateCounters } from "./agents.js";
import { Calls } from "./calls.js";
import { Clock } from "./clock.js";
import { Dial } from "./dial.js";
import { Directory } from "./directory.js";
import { runAction, byID, el, oncePerFrame, setText } from "./dom.js";
import { Explain } from "./explain.js";
import { EventList } from "./event_list.js";
import { Figures } from "./figures.js";
import { Floor, FloorRefresh, changesFloor } from "./floor.js";
import { Enrolment, isEnrolmentRequired } from "./enrolment.js";
import { factsOf } from "./facts.js";
import { request, RequestError } from "./http.js";
import { eventTypes } from "./event_types.js";
import { ConnectionStatus } from "./connection_status.js";
import { ChannelConnection } from "./channel_connection.js";
import { CallRecordSearch } from "./call_records.js";
import { ChannelPosition, eventTime } from "./channel_position.js";
import { EventRates } from "./event_rates.js";
import { Session } from "./session.js";
import { typeName, milliseconds, rate } from "./format.js";
import { Sparkline } from "./sparkline.js";
import { Views } from "./views.js";
import { FilterForm } from "./filter_form.js";

const clock = new Clock(), session = new Session(clock), floor = new Floor(), eventRates = new EventRates();
const connectionStatus = new ConnectionStatus();

const agents = new Agents({ tiles: byID("agents"), counts: byID("agent-counts"), empty: byID("agents-empty"), more: byID("agents-more") });
const calls = new Calls({ rows: byID("calls"), queues: byID("queues"), empty: byID("calls-empty"), more: byID("calls-more") });
byID("agent-counts").append(...stateCounters());

const offerNumber = (/** @type {string} */ number) => {
  views.go("phone");
  dial.offer(number);
};
const explain = new Explain(session);
const eventList = new EventList({
  list: byID("feed"), account: byID("feed-account"), type: byID("feed-type"), text: byID("feed-text"),
  pause: byID("feed-pause"), clear: byID("feed-clear"), count: byID("feed-count"), empty: byID("feed-empty"),
}, offerNumber, (id) => explain.controls(id));
byID("feed-type").append(...eventTypes.map((type) => el("option", { value: type }, typeName(type))));

const callRecordSearch = new CallRecordSearch(session, {
  form: byID("lookup"), button: byID("lookup-go"), output: byID("lookup-output"), result: byID("lookup-result"),
}, offerNumber);
const dial = new Dial(session, {
  form: byID("dial"), number: byID("dial-number"), button: byID("dial-go"), output: byID("dial-output"),
  list: byID("dial-calls"), status: byID("dial-status"),
}, (id) => callRecordSearch.find(id));
const admin = new Admin(session, {
  account: byID("admin-account"), seal: byID("seal-read"), sealOutput: byID("seal-output"), sealResult: byID("seal-result"),
  list: byID("ai-read"), listOutput: byID("ai-output"), listResult: byID("ai-result"),
});

const panel = (/** @type {string} */ name) => ({
  form: byID(`${name}-form`), list: byID(`${name}-read`), create: byID(`${name}-create`), output: byID(`${name}-output`), result: byID(`${name}-result`),
});
const directory = new Directory(session, byID("admin-account"), byID("users-subject"), { accounts: panel("accounts"), users: panel("users"), keys: panel("keys") });
const figures = new Figures(session, clock, (account, agent) => floor.nameOf(account, agent));
const views = new Views((view, before) => {
  if (before === "admin") {
    admin.leave();
    directory.leave();
  }
  if (view === "admin") directory.enter();
  figures.show(view === "figures");
});

// Draws the floor at most once per frame, its durations once a second.
const severalAccounts = () => eventList.accounts.size > 1;
const draw = oncePerFrame(() => {
  agents.show(floor.agents, clock.now(), severalAccounts());
  calls.show(floor.calls, floor.queues, clock.now(), severalAccounts());
  setText(byID("waiting-now"), floor.queues.reduce((sum, q) => sum + q.waiting, 0));
  setText(byID("talking-now"), floor.queues.reduce((sum, q) => sum + q.talking, 0));
});

const rates = new Sparkline(byID("rate-chart")), delays = new Sparkline(byID("delay-chart"));
function tick() {
  const now = clock.now(), { rate: perSecond, median, p95 } = eventRates.recent(now);
  agents.tick(now);
  calls.tick(now);
  setText(byID("rate-now"), rate(perSecond));
  setText(byID("delay-now"), milliseconds(median));
  setText(byID("delay-p95"), Number.isFinite(p95) ? `95 % within ${milliseconds(p95)}` : "\u00a0");
  rates.draw(eventRates.rates(now), 2);
  delays.draw(eventRates.delays(now), 50);
  connectionStatus.tick();
}
setInterval(tick, 1000);
const channel = new ChannelConnection(new ChannelPosition(), clock, {
  snapshot(snapshot) {
    floor.show(snapshot);
    draw();
  },
  message(message, text) {
    const live = channel.state.phase === "live", now = clock.now();
    eventRates.count(now, live ? now - eventTime(message.id) : NaN);
    const facts = factsOf(message);
    eventList.add(message, text);
    if (facts?.name === "call.progress") dial.progress(message.data);
    if (changesFloor(facts)) refresh.event(message.id);
  },
  state(state) {
    connectionStatus.show(state);
    if (state.phase === "login") askLogin(state.reason);
  },
});
const refresh = new FloorRefresh(() => channel.refresh());
addEventListener("online", () => channel.retryNow());
addEventListener("offline", () => channel.retryNow());
document.addEventListener("visibilitychange", () => { if (!document.hidden) channel.retryNow(); });
byID("reconnect").addEventListener("click", () => channel.retryNow());

// New filters need a new token; all displayed data restarts with it.
const filterForm = new FilterForm({
  form: byID("wanted"), button: byID("wanted-go"), output: byID("wanted-output"),
  fields: { queue_ids: byID("wanted-queues"), agent_ids: byID("wanted-agents"), call_ids: byID("wanted-calls"), names: byID("wanted-names") },
}, async (filters) => {
  await session.subscribe(filters);
  calls.forgetQueues();
  floor.show(null);
  eventList.clear();
  draw();
  channel.restart(session.channel);
});

// Login and logout.
const dialog = byID("login"), loginForm = byID("login-form");
const enrolment = new Enrolment({
  form: byID("enrol"), secret: byID("enrol-secret"), secretCopy: byID("enrol-copy"), link: byID("enrol-link"), code: byID("enrol-code"),
  button: byID("enrol-go"), output: byID("enrol-output"),
  recovery: byID("recovery"), codes: byID("recovery-codes"), codesCopy: byID("recovery-copy"), done: byID("recovery-done"),
}, () => {
  loginForm.hidden = false;
  setText(byID("login-why"), "Log in with the app's next code.");
  askOTP();
});
function askOTP() {
  byID("login-otp-label").hidden = false;
  byID("login-otp").value = "";
  byID("login-otp").focus();
}
function askLogin(/** @type {string} */ reason = "") {
  setText(byID("login-why"), reason);
  if (session.domain) byID("login-domain").value = session.domain;
  if (session.user) byID("login-username").value = session.user.username;
  if (!dialog.open) dialog.showModal();
  showProvider();
  (byID("login-username").value ? byID("login-password") : byID("login-username")).focus();
}
/** Shows the OpenID Connect login if the server has a provider. */
function showProvider() {
  request("/auth/oidc").then(({ login }) => { byID("login-provider").hidden = !login; }, () => {}); // on failure, the password login remains
}
dialog.addEventListener("cancel", (/** @type {Event} */ event) => {
  if (!channel.state.transport) event.preventDefault(); // before the login the board has nothing to show
});
session.expired = askLogin;
loginForm.addEventListener("submit", (/** @type {Event} */ event) => {
  event.preventDefault();
  runAction(byID("login-go"), byID("login-output"), async () => {
    const [username, password, domain] = ["username", "password", "domain"].map((name) => byID(`login-${name}`).value);
    const before = session.user?.id;
    try {
      await session.login(username.trim(), password, domain.trim(), byID("login-otp").value.trim());
    } catch (error) {
      if (isEnrolmentRequired(error)) {
        await enrolment.begin(username.trim(), password, domain.trim());
        loginForm.hidden = true;
        byID("enrol-code").focus();
        return;
      }
      if (error instanceof RequestError && error.fields.some(({ field }) => field === "otp")) askOTP();
      throw error;
    }
    byID("login-password").value = byID("login-otp").value = "";
    byID("login-otp-label").hidden = true;
    dialog.close();
    if (before && before !== session.user?.id) return location.reload(); // the page still has the other user's data
    begin();
  });
});
byID("logout").addEventListener("click", async () => {
  channel.stop();
  await session.logout();
  location.reload(); // removes all data from the page
});

function begin() {
  const user = session.user;
  if (!user) return askLogin();
  document.body.classList.add("in");
  setText(byID("who"), `${user.username} · ${user.account_id}`);
  filterForm.show(session.filters);
  byID("admin-account").placeholder = user.account_id;
  views.allow("admin", user.role === "admin");
  byID("figures-account").placeholder = user.account_id;
  figures.show(views.view === "figures");
  setText(byID("dial-hint"), user.presence_id ? `Your phone with extension ${user.presence_id} rings first.`
    : "Your user has no extension, which click to call needs.");
  channel.run(session.channel);
}
draw();
tick();
if (new URLSearchParams(location.search).get("login") === "oidc") {
  history.replaceState(null, "", location.pathname + location.hash);
  session.loginAtProvider().then(begin, (/** @type {Error} */ error) => askLogin(error.message));
} else {
  begin();
}
