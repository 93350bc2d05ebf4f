package identity

import (
	"trunkline/internal/entitytag"
	"trunkline/internal/fault"
)

// ETag returns the entity tag of the account's fields.
func (a Account) ETag() string { return entitytag.Of(a.ID, a.Name, a.Domain, a.ParentID) }

// ETag returns the entity tag of the user's fields. A change of the password changes
// it too.
func (u User) ETag() string {
	return entitytag.Of(u.ID, u.AccountID, u.Username, u.PresenceID, u.Role, u.generation)
}

// ETag returns the entity tag of the key's fields.
func (k APIKey) ETag() string {
	return entitytag.Of(k.ID, k.AccountID, k.Name, joinScopes(k.Scopes, ","), k.ExpiresAt.UnixMilli())
}

// requireMatch returns fault.KindPrecondition if a request's If-Match ("": none)
// does not match the object's tag.
func requireMatch(ifMatch, tag string) error {
	if ifMatch == "" || entitytag.Matches(ifMatch, tag) {
		return nil
	}
	return fault.New(fault.KindPrecondition, "It has changed: its ETag is %s", tag)
}
