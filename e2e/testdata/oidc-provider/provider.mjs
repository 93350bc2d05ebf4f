// An OpenID Connect provider (npm oidc-provider) for e2e/oidc_test.go:
//
//   node provider.mjs ISSUER REDIRECT_URI...
//
// ISSUER is http://127.0.0.1:PORT. Any password is accepted; the user is the one of the given
// name, of account demo, and root is an administrator. Clients: the public "trunkline", and
// "program", which gets JWT access tokens for urn:trunkline.
import { generateKeyPairSync } from "node:crypto";
import { Provider } from "oidc-provider";

const [issuer, ...redirects] = process.argv.slice(2);
const key = (type, options, more) => ({ ...generateKeyPairSync(type, options).privateKey.export({ format: "jwk" }), use: "sig", ...more });
const claimsOf = (sub) => ({ account: "demo", role: sub === "root" ? "admin" : "user", extension: sub === "root" ? "" : "1007" });
const scope = "openid profile email";

const provider = new Provider(issuer, {
  jwks: { keys: [key("rsa", { modulusLength: 2048 }, { alg: "RS256", kid: "r" }), key("ec", { namedCurve: "P-256" }, { alg: "ES256", kid: "e" })] },
  cookies: { keys: ["of a test"] },
  clients: ["trunkline", "program"].map((client_id) => ({
    client_id, redirect_uris: redirects, grant_types: ["authorization_code"], response_types: ["code"], token_endpoint_auth_method: "none",
  })),
  claims: { openid: ["sub", "account", "role", "extension"], profile: ["preferred_username"], email: ["email"] },
  conformIdTokenClaims: false, // the claims of scopes are in the ID token
  findAccount: (_, sub) => ({ accountId: sub, claims: () => ({ sub, preferred_username: sub, ...claimsOf(sub) }) }),
  extraTokenClaims: (_, token) => ({ ...claimsOf(token.accountId), preferred_username: token.accountId }),
  features: {
    devInteractions: { enabled: true }, // the page of the login
    resourceIndicators: {
      enabled: true,
      defaultResource: (_, client) => (client.clientId === "program" ? "urn:trunkline" : undefined),
      useGrantedResource: () => true,
      getResourceServerInfo: () => ({ scope: "", audience: "urn:trunkline", accessTokenFormat: "jwt", jwt: { sign: { alg: "ES256" } } }),
    },
  },
  // Skips the consent of the user.
  async loadExistingGrant(ctx) {
    const { client, session } = ctx.oidc;
    const grant = new ctx.oidc.provider.Grant({ clientId: client.clientId, accountId: session.accountId });
    grant.addOIDCScope(scope);
    grant.addResourceScope("urn:trunkline", "");
    await grant.save();
    return grant;
  },
});
const { hostname, port } = new URL(issuer);
provider.listen(Number(port), hostname, () => console.log("listening"));
