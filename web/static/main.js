/** The frame of all pages: navigation, connection, login; shows the page that the address names. */
import { Admin } from "./admin.js";
import { AlertBanner, Alerts } from "./alerts.js";
import { ConnectionLight, Notice } from "./connection.js";
import { Events } from "./events.js";
import { FloorPage } from "./floor_page.js";
import { History } from "./history.js";
import { Login } from "./login.js";
import { Phone } from "./phone.js";
import { channel, link, loginReason, logout, route, session, start, user } from "./state.js";
import { Dialog, Form, html, messageOf, render, useLayoutEffect, useRef, useState, useValue } from "./ui.js";
import { Wall } from "./wall.js";

const readers = ["admin", "supervisor", "agent", "user"];
/** The pages, with the roles that they are for. @type {Record<string, {title: string, of: any, roles: string[]}>} */
const pages = {
  floor: { title: "Floor", of: FloorPage, roles: readers }, wall: { title: "Wall", of: Wall, roles: readers },
  history: { title: "History", of: History, roles: readers }, alerts: { title: "Alerts", of: Alerts, roles: readers },
  phone: { title: "Phone", of: Phone, roles: readers }, events: { title: "Events", of: Events, roles: readers },
  admin: { title: "Administration", of: Admin, roles: ["admin", "auditor"] },
};

function Board() {
  const me = useValue(user), { view: asked } = useValue(route), why = useValue(loginReason), main = useRef(null), shown = useRef(""), [changing, changePassword] = useState(false);
  const allowed = Object.entries(pages).filter(([, { roles }]) => me && roles.includes(me.role));
  const [view, page] = allowed.find(([name]) => name === asked) ?? allowed[0] ?? ["", null];
  useLayoutEffect(() => {
    document.body.dataset.view = view;
    if (page) document.title = `Trunkline · ${page.title}`;
    if (shown.current && shown.current !== view && !main.current?.contains(document.activeElement)) main.current?.focus({ preventScroll: true });
    shown.current = view;
  }, [view]);
  return html`
    ${me && view !== "wall" && html`<header class="bar">
      <p class="brand"><img src="/board/icon.svg" alt="" width="28" height="28" /><b>Trunkline</b></p>
      <nav aria-label="Pages"><ul>${allowed.map(([name, { title }]) => html`<li key=${name}>
        <a href=${link(name)} aria-current=${name === view ? "page" : undefined}>${title}</a></li>`)}<li class="wide"><a href="/docs">Docs</a></li></ul></nav>
      ${me.role === "auditor" ? html`<span class="end"></span>` : html`<${ConnectionLight} />`}
      <div class="me"><span id="who">${me.username} · ${me.account_id}</span>
        <button type="button" class="plain" aria-haspopup="dialog" onClick=${() => changePassword(true)}>Password</button><button id="logout" type="button" onClick=${logout}>Log out</button></div>
    </header>`}
    ${me && html`<${AlertBanner} wall=${view === "wall"} />`}
    <main id="main" ref=${main} tabindex="-1">${page && html`<${page.of} key=${view} />`}</main>
    <${Notice} />
    ${changing && html`<${OwnPassword} close=${() => changePassword(false)} />`}
    ${(why !== null || !me) && html`<${Login} reason=${why ?? ""} onLogin=${begin} />`}`;
}

/** Changes the password of the user who is logged in. */
function OwnPassword({ close }) {
  const [said, say] = useState("");
  const save = async (body) => {
    await session.request("/ucp/v2/password", { method: "PUT", body });
    say("It was changed. Your other sessions have ended.");
  };
  return html`<${Dialog} title="Your password" onClose=${close}>${said ? html`<p class="output" role="status">${said}</p>`
    : html`<${Form} label="Change password" submit=${save} fields=${[
      { name: "current", label: "Present password", type: "password", autocomplete: "current-password", required: true, autofocus: true },
      { name: "new", label: "New password", type: "password", autocomplete: "new-password", required: true }]} />`}</${Dialog}>`;
}

/** Shows the board to the user who is logged in. */
function begin() {
  const before = user.value?.id;
  if (before && before !== session.user?.id) return location.reload(); // the page still has the other user's data
  loginReason.set(null);
  user.set(session.user);
  if (session.channel) channel.run(session.channel);
}

start();
render(html`<${Board} />`, document.getElementById("app"));
if (new URLSearchParams(location.search).get("login") === "oidc") {
  history.replaceState(null, "", location.pathname + location.hash);
  session.loginAtProvider().then(begin, (error) => loginReason.set(messageOf(error)));
} else if (session.user) {
  begin();
}
