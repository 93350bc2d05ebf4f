package api

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"trunkline/identity"
	"trunkline/internal/fault"
)

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
