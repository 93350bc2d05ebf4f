package api

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"trunkline/identity"
	"trunkline/internal/fault"
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

const (
	accountsPath = "/api/v2/accounts"
	keysPath     = "/api/v2/apikeys"
)

// directoryRoutes are for administrators and API keys with the scope admin. They apply to
// the caller's account and those below it.
type directoryRoutes struct {
	directory Directory
	otps      OTPs
	auth      auth
}

func (r directoryRoutes) routes() []route {
	const (
		account = accountsPath + "/:id"
		users   = account + "/users"
		user    = users + "/:user"
		devices = user + "/devices"
		key     = keysPath + "/:id"
	)
	routes := []route{
		{method: http.MethodGet, path: accountsPath,
			handle: authorized(r.auth.authenticateAnyAdmin, r.handleListAccounts), query: searchParams},
		{method: http.MethodPost, path: accountsPath,
			handle: authorized(r.auth.authenticateAnyAdmin, r.handleCreateAccount)},
		{method: http.MethodGet, path: account, handle: authorized(r.pathAccount, r.handleGetAccount)},
		{method: http.MethodPut, path: account, handle: authorized(r.pathAccount, r.handleUpdateAccount)},
		{method: http.MethodDelete, path: account, handle: authorized(r.pathAccount, r.handleDeleteAccount),
			query: []string{"purge"}},
		{method: http.MethodGet, path: users, handle: authorized(r.pathAccount, r.handleListUsers),
			query: searchParams},
		{method: http.MethodPost, path: users, handle: authorized(r.pathAccount, r.handleCreateUser)},
		{method: http.MethodGet, path: user, handle: authorized(r.pathUser, r.handleGetUser)},
		{method: http.MethodPut, path: user, handle: authorized(r.pathUser, r.handleUpdateUser)},
		{method: http.MethodDelete, path: user, handle: authorized(r.pathUser, r.handleDeleteUser)},
		{method: http.MethodPost, path: user + "/otp", handle: authorized(r.pathUser, r.handleEnrolOTP)},
		{method: http.MethodDelete, path: user + "/otp", handle: authorized(r.pathUser, r.handleDeleteOTP)},
		{method: http.MethodGet, path: devices, handle: authorized(r.pathUser, r.handleListDevices), query: pageParams},
		{method: http.MethodPost, path: devices, handle: authorized(r.pathUser, r.handleCreateDevice)},
		{method: http.MethodDelete, path: devices + "/:device", handle: authorized(r.pathUser, r.handleDeleteDevice)},
		{method: http.MethodGet, path: keysPath, handle: authorized(r.keysAccount, r.handleListKeys),
			query: searchParams},
		{method: http.MethodPost, path: keysPath, handle: authorized(r.keysAccount, r.handleCreateKey)},
		{method: http.MethodGet, path: key, handle: authorized(r.pathKey, r.handleGetKey)},
		{method: http.MethodPut, path: key, handle: authorized(r.pathKey, r.handleUpdateKey)},
		{method: http.MethodDelete, path: key, handle: authorized(r.pathKey, r.handleDeleteKey)},
	}

	for i := range routes {
		routes[i].scope = identity.ScopeAdmin
		if routes[i].method == http.MethodGet { // none of them has a secret
			routes[i].also = auditors
		}
	}

	return routes
}

// pathAccount authenticates the caller and returns the account in the path. Returns
// fault.KindNotFound if the caller cannot access it.
func (r directoryRoutes) pathAccount(c echo.Context) (identity.Account, error) {
	caller, err := r.auth.authenticateAnyAdmin(c)
	if err != nil {
		return identity.Account{}, err
	}
	return r.auth.visibleAccount(caller, c.Param("id"))
}

// errOwnObject returns the error for a change that callers may not apply to their own
// account, user or key.
func errOwnObject(message string) error {
	return fault.Conflict("%s: ask another administrator", message)
}
