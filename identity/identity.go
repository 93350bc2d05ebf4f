package identity

import (
	"slices"
	"time"
	_ "time/tzdata" // minimal images have no time zones
)

// Account is a node of the tree. Its users see it and every account below it.
type Account struct {
	ID        string // 1-64 of [A-Za-z0-9_.-]
	Name      string // unique
	Domain    string // unique, lower-case; given at login
	ParentID  string // "" for a root account
	TimeZone  string // IANA name; "" for UTC
	CreatedAt time.Time
}

// Location returns the account's time zone.
func (a Account) Location() *time.Location {
	location, err := time.LoadLocation(a.TimeZone)
	if err != nil { // this host's time zone data lacks a stored name
		return time.UTC
	}
	return location
}

// Role is the set of permissions of a user in the accounts they see.
type Role string

// The roles.
const (
	RoleUser       Role = "user"       // reads the accounts' events, records and figures, places calls
	RoleAdmin      Role = "admin"      // everything
	RoleSupervisor Role = "supervisor" // sees queues and the agents in them, and acts on both
	RoleAgent      Role = "agent"      // sees itself and its calls, and acts on both
	RoleAuditor    Role = "auditor"    // reads the audit log, configuration without secrets and metadata of recordings
)

var knownRoles = []Role{RoleAdmin, RoleSupervisor, RoleAgent, RoleAuditor, RoleUser}

// Roles returns every role; of several in a claim the first counts.
func Roles() []Role { return slices.Clone(knownRoles) }

// Valid reports whether r is a defined role.
func (r Role) Valid() bool { return slices.Contains(knownRoles, r) }

// unknownToEarlierVersions reports whether r is a role that earlier versions do not know.
func (r Role) unknownToEarlierVersions() bool { return r != RoleUser && r != RoleAdmin }

// User is a person who logs in, without the password.
type User struct {
	ID            string
	AccountID     string
	Username      string // unique in the account, whatever its case
	PresenceID    string // extension, unique in the account; "" if the user has none
	Role          Role
	Limits               // of the role
	ClickToCallID string // id of the user's click-to-call resource; "" before it is created
	OIDCSubject   string // "sub" at the OpenID Connect provider; "" for a user who logs in by password
	CreatedAt     time.Time

	passwordGeneration int64 // incremented at each change of the password
}

// APIKey describes a key of an account. The key itself is not stored, only its hash.
type APIKey struct {
	ID        string
	AccountID string
	Name      string
	Scopes    []Scope
	Role      Role      // RoleAdmin unless it is limited
	Limits              // of the role
	ExpiresAt time.Time // zero for a key that never expires
	CreatedAt time.Time
}

func (k APIKey) expired(now time.Time) bool { return !k.ExpiresAt.IsZero() && !now.Before(k.ExpiresAt) }

// Audience is the purpose of a token. Audiences are not interchangeable.
type Audience string

// The audiences.
const (
	AudienceAPI    Audience = "api"    // tokens of the portal login
	AudienceEvents Audience = "events" // tokens of the channel login
)

// Valid reports whether a is a defined audience.
func (a Audience) Valid() bool { return a == AudienceAPI || a == AudienceEvents }

// Principal is the authenticated sender of a request: a user with a token, or an API
// key, which is a virtual administrator of its account within its scopes, or has the
// role that it was given.
type Principal struct {
	UserID    string // empty for an API key and its tokens
	Username  string // empty for an API key and its tokens
	KeyID     string // the API key, or the one that a channel token was issued from; empty for a user's token
	AccountID string
	Role      Role     // of an API key: RoleAdmin unless it is limited
	Scopes    []Scope  // set only for API keys
	Audience  Audience // empty for an API key, which is not a token
	TokenID   string
	FamilyID  string    // the portal login and its refreshes; empty for a channel login by password
	ExpiresAt time.Time // zero for an API key
	Filter              // set only for channel tokens

	authVisibility     *Visibility // as of its authentication; nil where there was none: of its role without limits
	signingKey         string      // id of the key that signed the token
	passwordGeneration int64       // generation of the user's password when the session began
}

// IsKey reports whether the principal is an API key, not a token.
func (p *Principal) IsKey() bool { return p.KeyID != "" && p.Audience == "" }

// Actor returns the principal in the form of the audit log's actor.
func (p *Principal) Actor() string {
	if p.KeyID != "" {
		return "apikey:" + p.KeyID
	}
	return "user:" + p.UserID
}

// Phone is the user that a phone registers as.
type Phone struct {
	UserID    string
	AccountID string
	Domain    string // of the account; the realm of digest authentication
	Extension string // presence_id of the user; the username of digest authentication
	username  string
}

// HA1 has the hashes of extension:domain:password that digest authentication needs (RFC
// 7616, section 3.4.2), in hex; "" if not stored. They are secrets.
type HA1 struct{ MD5, SHA256 string }

// LoginRequest has the fields of a login.
type LoginRequest struct {
	Username string
	Password string
	Domain   string
	OTP      string // one-time password or recovery code; "" if the request has none
	Address  string // the client's IP address, "" if unknown
}

// Session is the result of a portal login or a refresh.
type Session struct {
	User         User
	AccessToken  string
	RefreshToken string
	ExpiresIn    time.Duration // of AccessToken
}
