-- A login without a domain finds the users of a name in all accounts.
CREATE INDEX identity_users_username ON identity_users (username_key);
