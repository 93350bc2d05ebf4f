/** The login, and one-time passwords of an administrator whose account requires them. */
import { request, RequestError } from "./http.js";
import { channel, session } from "./state.js";
import { Copy, Dialog, Form, html, useEffect, useState } from "./ui.js";

const otpPath = "/ucp/v2/otp";
const fieldNamed = (error, code = "") =>
  error instanceof RequestError && error.fields.some((one) => one.field === "otp" && (!code || one.code === code));

/** @param {{reason: string, onLogin: () => void}} properties */
export function Login({ reason, onLogin }) {
  const [step, setStep] = useState(/** @type {any} */ ({ name: "password" })), [otp, askOTP] = useState(false), [provider, setProvider] = useState(false);
  useEffect(() => { request("/auth/oidc").then(({ login }) => setProvider(login), () => {}); }, []); // on failure, the password login remains
  // Before the login the board has nothing to show.
  const cancel = (event) => { if (!channel.state.transport) event.preventDefault(); };
  const login = async ({ username = "", password = "", domain = "", otp: code = "" }) => {
    const credentials = { username: username.trim(), password, ...(domain.trim() && { domain: domain.trim() }) };
    try {
      await session.login(credentials.username, password, domain.trim(), code.trim());
    } catch (error) {
      if (fieldNamed(error, "enrolment_required")) {
        const { secret, uri } = await request(otpPath, { method: "POST", body: credentials });
        return setStep({ name: "enrol", credentials, secret, uri });
      }
      if (fieldNamed(error)) {
        askOTP(true);
        requestAnimationFrame(() => document.getElementById("login")?.querySelector("[name=otp]")?.focus());
        if (!otp) throw new Error("Enter the one-time password of your app");
      }
      throw error;
    }
    onLogin();
  };
  const confirm = async ({ otp: code = "" }) => {
    const { recovery_codes: codes } = await request(otpPath, { method: "PUT", body: { ...step.credentials, otp: code.trim() } });
    setStep({ name: "recovery", codes });
  };
  const known = { username: session.user?.username, domain: session.domain || undefined };
  return html`<${Dialog} id="login" title=${{ password: "Log in to Trunkline", enrol: "Set up one-time passwords", recovery: "Recovery codes" }[step.name]}
    onCancel=${cancel}>
    ${step.name === "password" && html`${(reason || step.why) && html`<p id="login-why" class="output bad" role="status">${step.why ?? reason}</p>`}
      <${Form} id="login-form" key=${`password ${step.why}`} label="Log in" submit=${login} initial=${known} fields=${[
        { name: "username", label: "Username", autocomplete: "username", required: true, autofocus: !known.username },
        { name: "password", label: "Password", type: "password", autocomplete: "current-password", required: true, autofocus: Boolean(known.username) },
        { name: "domain", label: "Domain", autocomplete: "organization", placeholder: "demo.local", hint: "May be left out where your username is unique." },
        ...otp ? [{ name: "otp", label: "One-time password", autocomplete: "one-time-code", inputmode: "numeric", autofocus: true }] : [],
      ]} />
      ${provider && html`<p id="login-provider"><a href="/auth/oidc/start">Log in with single sign-on</a></p>`}`}
    ${step.name === "enrol" && html`<p>Your account requires them of its administrators. Add this key to an authenticator app, then enter the code that the app shows.</p>
      <p><code id="enrol-secret" class="secret">${step.secret.match(/.{1,4}/g).join(" ")}</code></p>
      <p class="actions"><${Copy} text=${() => step.secret}>Copy key</${Copy}> <a id="enrol-link" href=${step.uri}>Open in this device's app</a></p>
      <${Form} id="enrol" key="enrol" label="Confirm" submit=${confirm} fields=${[{ name: "otp", label: "Code", inputmode: "numeric",
        autocomplete: "one-time-code", required: true }]} />`}
    ${step.name === "recovery" && html`<p>Each of them replaces one code of the app, once. They are not shown again: store them now.</p>
      <ul id="recovery-codes">${step.codes.map((code) => html`<li><code>${code}</code></li>`)}</ul>
      <p class="actions"><${Copy} text=${() => step.codes.join("\n")}>Copy codes</${Copy}>
      <button id="recovery-done" type="button" class="primary" autofocus onClick=${() => { askOTP(true); setStep({ name: "password",
        why: "Log in with the app's next code." }); }}>Continue to the login</button>
        </p>`}
  </${Dialog}>`;
}
