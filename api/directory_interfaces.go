package api

import (
	"context"

	"trunkline/identity"
)

// Directory manages accounts, users, phones and API keys.
type Directory interface {
	AccountDirectory
	UserDirectory
	DeviceDirectory
	KeyDirectory
}

// AccountDirectory changes accounts. Accounts reads them.
type AccountDirectory interface {
	// CreateAccount creates an account. Its id, name and domain must not be the id, name or domain
	// of another account, because each of them identifies one account.
	CreateAccount(ctx context.Context, n identity.NewAccount) (identity.Account, error)
	// UpdateAccount renames an account, changes its domain and moves it with all accounts below it.
	// The rules of CreateAccount apply. The hashes of phones' passwords include the domain, so
	// these passwords must be set again after a change of the domain.
	UpdateAccount(ctx context.Context, id string, u identity.AccountUpdate) (identity.Account, error)
	// DeleteAccount deletes an account that has no accounts below it, its users and its API keys,
	// and ends their tokens. Its data in other packages is purged later (Purge). It returns the
	// account's id. ifMatch is the request's If-Match header, "" for none. Returns
	// fault.KindPrecondition if it does not match.
	DeleteAccount(ctx context.Context, ref, ifMatch string) (id string, err error)
	// DeleteAndPurgeAccount is DeleteAccount, and the next run of Purge deletes the account's data
	// without waiting for the end of its retention.
	DeleteAndPurgeAccount(ctx context.Context, ref, ifMatch string) (id string, err error)
}

// UserDirectory reads and changes the users of accounts.
type UserDirectory interface {
	// ListUsers lists an account's users, by name.
	ListUsers(ctx context.Context, accountRef string) ([]identity.User, error)
	// FindUser returns the user with the id.
	FindUser(ctx context.Context, id string) (identity.User, error)
	// CreateUser creates a user.
	CreateUser(ctx context.Context, n identity.NewUser) (identity.User, error)
	// UpdateUser changes a user. A change of the role ends the user's access and channel tokens,
	// and a change of the password also ends the sessions. A change of the extension deletes the
	// passwords of the user's phones.
	UpdateUser(ctx context.Context, id string, u identity.UserUpdate) (identity.User, error)
	// DeleteUserByID is DeleteUser for the user with the id. ifMatch is the request's If-Match
	// header, "" for none. Returns fault.KindPrecondition if it does not match.
	DeleteUserByID(ctx context.Context, id, ifMatch string) error
	// CheckCredentialGrant checks that by (nil: the operator) may give a user of the role a
	// password, a one-time password or a phone. An API key that expires may not, because what it
	// gives would outlive it, and only a key with every scope gives an administrator's, who may do
	// everything. Users' tokens are bound by the role alone, which the caller has checked. Returns
	// fault.KindForbidden.
	CheckCredentialGrant(by *identity.Principal, role identity.Role) error
}

// OTPs creates and deletes the one-time passwords of users.
type OTPs interface {
	// EnrolOTP creates a secret for a user that needs no confirmation.
	EnrolOTP(ctx context.Context, accountRef, username string) (identity.OTPEnrolment, []string, error)
	// DeleteOTP deletes a user's one-time password secrets and recovery codes.
	DeleteOTP(ctx context.Context, accountRef, username string) error
}

// DeviceDirectory reads and changes the passwords of users' phones.
type DeviceDirectory interface {
	// ListDevices lists a user's devices, the oldest first.
	ListDevices(ctx context.Context, accountRef, username string) ([]identity.Device, error)
	// CreateDevice creates a password for a phone of a user and returns it. Only a hash of it is
	// stored. It is valid until it is deleted or the user's extension changes.
	CreateDevice(ctx context.Context, accountRef, username, name string) (password string, d identity.Device, err error)
	// DeleteDevice deletes the device password with the id.
	DeleteDevice(ctx context.Context, id string) error
}

// KeyDirectory reads and changes API keys.
type KeyDirectory interface {
	// ListAPIKeys lists an account's keys, oldest first, expired ones included.
	ListAPIKeys(ctx context.Context, accountRef string) ([]identity.APIKey, error)
	// FindAPIKey returns the key with the id. Returns fault.KindNotFound if there is none.
	FindAPIKey(ctx context.Context, id string) (identity.APIKey, error)
	// CreateAPIKey creates a key of an account. The key is returned only here.
	CreateAPIKey(ctx context.Context, n identity.NewAPIKey) (key string, k identity.APIKey, err error)
	// UpdateAPIKey changes a key's name, scopes and expiry, not its secret. The change also applies
	// to channel tokens issued from the key.
	UpdateAPIKey(ctx context.Context, id string, u identity.APIKeyUpdate) (identity.APIKey, error)
	// DeleteAPIKey deletes the key with the id. ifMatch is the request's If-Match header, "" for
	// none. Returns fault.KindPrecondition if it does not match.
	DeleteAPIKey(ctx context.Context, id, ifMatch string) error
}
