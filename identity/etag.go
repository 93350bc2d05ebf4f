package identity

import "trunkline/internal/entitytag"

// ETag returns the entity tag of the account's fields.
func (a Account) ETag() string { return entitytag.Of(a.ID, a.Name, a.Domain, a.ParentID, a.TimeZone) }

// ETag returns the entity tag of the user's fields. A change of the password changes
// it too.
func (u User) ETag() string {
	return entitytag.Of(u.ID, u.AccountID, u.Username, u.PresenceID, u.Role, u.passwordGeneration, u.Limits)
}

// ETag returns the entity tag of the key's fields.
func (k APIKey) ETag() string {
	return entitytag.Of(k.ID, k.AccountID, k.Name, joinScopes(k.Scopes, ","), k.ExpiresAt.UnixMilli(), k.Role, k.Limits)
}
