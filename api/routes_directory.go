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

// AccountDirectory changes accounts. Authenticator reads them.
type AccountDirectory interface {
	CreateAccount(ctx context.Context, n identity.NewAccount) (identity.Account, error)
	UpdateAccount(ctx context.Context, id string, u identity.AccountUpdate) (identity.Account, error)
	DeleteAccount(ctx context.Context, ref, ifMatch string) (id string, err error)
	DeleteAndPurgeAccount(ctx context.Context, ref, ifMatch string) (id string, err error)
}

// UserDirectory reads and changes the users of accounts.
type UserDirectory interface {
	ListUsers(ctx context.Context, accountRef string) ([]identity.User, error)
	FindUser(ctx context.Context, id string) (identity.User, error)
	CreateUser(ctx context.Context, n identity.NewUser) (identity.User, error)
	UpdateUser(ctx context.Context, id string, u identity.UserUpdate) (identity.User, error)
	DeleteUserByID(ctx context.Context, id, ifMatch string) error
	CheckCredentialGrant(by *identity.Principal, role identity.Role) error
	EnrolOTP(ctx context.Context, accountRef, username string) (identity.OTPEnrolment, []string, error)
	DeleteOTP(ctx context.Context, accountRef, username string) error
}

// DeviceDirectory reads and changes the passwords of users' phones.
type DeviceDirectory interface {
	ListDevices(ctx context.Context, accountRef, username string) ([]identity.Device, error)
	CreateDevice(ctx context.Context, accountRef, username, name string) (password string, d identity.Device, err error)
	DeleteDevice(ctx context.Context, id string) error
}

// KeyDirectory reads and changes API keys.
type KeyDirectory interface {
	ListAPIKeys(ctx context.Context, accountRef string) ([]identity.APIKey, error)
	FindAPIKey(ctx context.Context, id string) (identity.APIKey, error)
	CreateAPIKey(ctx context.Context, n identity.NewAPIKey) (key string, k identity.APIKey, err error)
	UpdateAPIKey(ctx context.Context, id string, u identity.APIKeyUpdate) (identity.APIKey, error)
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
		{method: http.MethodGet, path: accountsPath, handle: authorized(r.auth.authenticateAnyAdmin, r.handleListAccounts)},
		{method: http.MethodPost, path: accountsPath, handle: authorized(r.auth.authenticateAnyAdmin, r.handleCreateAccount)},
		{method: http.MethodGet, path: account, handle: authorized(r.pathAccount, r.handleGetAccount)},
		{method: http.MethodPut, path: account, handle: authorized(r.pathAccount, r.handleUpdateAccount)},
		{method: http.MethodDelete, path: account, handle: authorized(r.pathAccount, r.handleDeleteAccount)},
		{method: http.MethodGet, path: users, handle: authorized(r.pathAccount, r.handleListUsers)},
		{method: http.MethodPost, path: users, handle: authorized(r.pathAccount, r.handleCreateUser)},
		{method: http.MethodGet, path: user, handle: authorized(r.pathUser, r.handleGetUser)},
		{method: http.MethodPut, path: user, handle: authorized(r.pathUser, r.handleUpdateUser)},
		{method: http.MethodDelete, path: user, handle: authorized(r.pathUser, r.handleDeleteUser)},
		{method: http.MethodPost, path: user + "/otp", handle: authorized(r.pathUser, r.handleEnrolOTP)},
		{method: http.MethodDelete, path: user + "/otp", handle: authorized(r.pathUser, r.handleDeleteOTP)},
		{method: http.MethodGet, path: devices, handle: authorized(r.pathUser, r.handleListDevices)},
		{method: http.MethodPost, path: devices, handle: authorized(r.pathUser, r.handleCreateDevice)},
		{method: http.MethodDelete, path: devices + "/:device", handle: authorized(r.pathUser, r.handleDeleteDevice)},
		{method: http.MethodGet, path: keysPath, handle: authorized(r.keysAccount, r.handleListKeys)},
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
