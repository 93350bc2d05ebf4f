import assert from "node:assert/strict";
import { test } from "node:test";
import { newUser } from "../static/directory.js";

test("a new user has a subject where one is entered, else a password of the server", () => {
  const fields = new FormData();
  fields.set("username", "carol");
  fields.set("presence_id", "1007");
  fields.set("role", "user");
  assert.deepEqual(newUser(fields), { username: "carol", presence_id: "1007", role: "user" });
  fields.set("oidc_subject", "  ");
  assert.deepEqual(newUser(fields), { username: "carol", presence_id: "1007", role: "user" });
  fields.set("oidc_subject", " u-1 ");
  assert.deepEqual(newUser(fields), { username: "carol", presence_id: "1007", role: "user", oidc_subject: "u-1" });
});
