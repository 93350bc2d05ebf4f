package identity

import (
	"time"
	_ "time/tzdata" // minimal images have no time zones
)

// Account is a node of the tree. Its users see it and every account below it.
type Account struct {
	ID        string // 1-64 of [A-Za-z0-9_.-]
	Name      string // unique
	Domain    string // unique, lower-case; given at login
	ParentID  string // "": a root
	TimeZone  string // IANA name; "": UTC
	CreatedAt time.Time
}

// Location returns the account's time zone.
func (a Account) Location() *time.Location {
	location, err := time.LoadLocation(a.TimeZone)
	if err != nil { // stored by a program with other time zone data
		return time.UTC
	}
	return location
}

// Role is the set of permissions of a user in the accounts they see.
type Role string

// The roles.
const (
	RoleUser  Role = "user"
	RoleAdmin Role = "admin"
)

// Known reports whether r is a defined role.
func (r Role) Known() bool { return r == RoleUser || r == RoleAdmin }

// User is a person who logs in, without the password.
type User struct {
	ID            string
	AccountID     string
	Username      string // unique in the account, whatever its case
	PresenceID    string // the extension, unique in the account; "": none
	Role          Role
	ClickToCallID string // of the click-to-call resource made for them; "": none yet
	OIDCSubject   string // "sub" at the OpenID Connect provider that logs the user in; "": logs in by password
	CreatedAt     time.Time

	generation int64 // of the password, raised at each change
}

// APIKey describes a key of an account. The key itself is not stored, only its hash.
type APIKey struct {
	ID        string
	AccountID string
	Name      string
	Scopes    []Scope
	ExpiresAt time.Time // zero: never
	CreatedAt time.Time
}

func (k APIKey) expired(now time.Time) bool { return !k.ExpiresAt.IsZero() && !now.Before(k.ExpiresAt) }

// Audience is the purpose of a token. Audiences are not interchangeable.
type Audience string

// The audiences: of the portal login and of the channel login.
const (
	AudienceAPI    Audience = "api"
	AudienceEvents Audience = "events"
)

// Known reports whether a is an audience.
func (a Audience) Known() bool { return a == AudienceAPI || a == AudienceEvents }

// Principal is the authenticated sender of a request: a user with a token, or an API
// key, which is a virtual administrator of its account within its scopes.
type Principal struct {
	UserID    string // "" of an API key and its tokens
	Username  string // "" of an API key and its tokens
	KeyID     string // of the API key, or of the one that a channel token was made from; "" of a user's token
	AccountID string
	Role      Role     // RoleAdmin of an API key
	Scopes    []Scope  // of an API key
	Audience  Audience // "" of an API key: it is no token
	TokenID   string
	FamilyID  string    // of the portal login and its refreshes; "" of a channel login by password
	ExpiresAt time.Time // zero of an API key
	Filter              // of a channel token

	signingKey string // id of the key that signed the token
	generation int64  // of the user's password when the session began
}

// IsKey reports whether the principal is an API key, not a token.
func (p *Principal) IsKey() bool { return p.KeyID != "" && p.Audience == "" }

// Actor returns the principal as the audit log names it.
func (p *Principal) Actor() string {
	if p.KeyID != "" {
		return "apikey:" + p.KeyID
	}
	return "user:" + p.UserID
}

// Credentials are the fields of a login request.
type Credentials struct {
	Username string
	Password string
	Domain   string
	OTP      string // one-time password or recovery code; "" when none was given
	Address  string // the client's IP address, "" when unknown
}

// Session is the result of a portal login or a refresh.
type Session struct {
	User         User
	AccessToken  string
	RefreshToken string
	ExpiresIn    time.Duration // of AccessToken
}
