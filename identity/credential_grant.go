package identity

import (
	"slices"
	"time"

	"trunkline/internal/fault"
)

const codeNotGranted = "not_granted"

// CheckCredentialGrant checks that by (nil: the operator) may give a user of the role a
// password, a one-time password or a phone. An API key that expires may not, because what
// it gives would outlive it, and only a key with every scope gives an administrator's, who
// may do everything. Users' tokens are bound by the role alone, which the caller has
// checked. Returns fault.KindForbidden.
func (d *Directory) CheckCredentialGrant(by *Principal, role Role) error {
	if by == nil || !by.IsKey() {
		return nil
	}

	key := d.snapshot.Load().keysByID[by.KeyID]
	switch {
	case !key.ExpiresAt.IsZero():
		return fault.Forbidden("An API key that expires gives no credentials to users: they would outlive it")
	case role == RoleAdmin && len(key.Scopes) < len(knownScopes):
		return fault.Forbidden(
			"Only an API key with every scope gives credentials to administrators: they may do more than this key")
	}

	return nil
}

// checkGrantedKey checks that by gives another key, or itself, neither scopes nor a time
// that by does not have. old is the key before the change (zero for a new one), which keeps
// what it has.
func (d *Directory) checkGrantedKey(by *Principal, key, old APIKey) error {
	if by == nil || !by.IsKey() {
		return nil
	}

	own := d.snapshot.Load().keysByID[by.KeyID]
	for _, scope := range key.Scopes {
		if !slices.Contains(own.Scopes, scope) && !slices.Contains(old.Scopes, scope) {
			return fault.NewField(fault.KindForbidden, "scopes", codeNotGranted,
				"The API key does not have the scope "+string(scope)+", and cannot give it")
		}
	}

	if own.Role != key.Role && key.Role == RoleAdmin && old.Role != RoleAdmin {
		return fault.NewField(fault.KindForbidden, "role", codeNotGranted,
			"The API key does not have the role "+string(key.Role)+", and cannot give it")
	}
	if outlives(key.ExpiresAt, own.ExpiresAt) && (old.ID == "" || outlives(key.ExpiresAt, old.ExpiresAt)) {
		return fault.NewField(fault.KindForbidden, "expires_at", codeNotGranted,
			"The API key expires earlier, and cannot give more time than it has")
	}

	return nil
}

// outlives reports whether something that expires at a lives longer than what expires at b;
// zero is never.
func outlives(a, b time.Time) bool {
	return !b.IsZero() && (a.IsZero() || a.After(b))
}
