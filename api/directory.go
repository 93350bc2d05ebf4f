package api

import (
	"context"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"trunkline/identity"
	"trunkline/internal/entitytag"
	"trunkline/internal/fault"
	"trunkline/internal/report"
)

// Directory manages accounts, users, phones and API keys.
type Directory interface {
	AccountDirectory
	UserDirectory
	DeviceDirectory
	KeyDirectory
}

// AccountDirectory changes accounts; auth has their tree.
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

// directoryRoutes are for administrators and API keys with the scope admin, who see
// their account and those below it.
type directoryRoutes struct {
	directory Directory
	auth      auth
}

func (r directoryRoutes) paths() []route {
	const (
		account = accountsPath + "/:id"
		users   = account + "/users"
		user    = users + "/:user"
		devices = user + "/devices"
		key     = keysPath + "/:id"
	)
	routes := []route{
		{method: http.MethodGet, path: accountsPath, handle: authorized(r.auth.authenticateAnyAdmin, r.listAccounts)},
		{method: http.MethodPost, path: accountsPath, handle: authorized(r.auth.authenticateAnyAdmin, r.createAccount)},
		{method: http.MethodGet, path: account, handle: authorized(r.account, r.getAccount)},
		{method: http.MethodPut, path: account, handle: authorized(r.account, r.updateAccount)},
		{method: http.MethodDelete, path: account, handle: authorized(r.account, r.deleteAccount)},
		{method: http.MethodGet, path: users, handle: authorized(r.account, r.listUsers)},
		{method: http.MethodPost, path: users, handle: authorized(r.account, r.createUser)},
		{method: http.MethodGet, path: user, handle: authorized(r.userOf, r.getUser)},
		{method: http.MethodPut, path: user, handle: authorized(r.userOf, r.updateUser)},
		{method: http.MethodDelete, path: user, handle: authorized(r.userOf, r.deleteUser)},
		{method: http.MethodPost, path: user + "/otp", handle: authorized(r.userOf, r.enrolOTP)},
		{method: http.MethodDelete, path: user + "/otp", handle: authorized(r.userOf, r.deleteOTP)},
		{method: http.MethodGet, path: devices, handle: authorized(r.userOf, r.listDevices)},
		{method: http.MethodPost, path: devices, handle: authorized(r.userOf, r.createDevice)},
		{method: http.MethodDelete, path: devices + "/:device", handle: authorized(r.userOf, r.deleteDevice)},
		{method: http.MethodGet, path: keysPath, handle: authorized(r.accountOfKeys, r.listKeys)},
		{method: http.MethodPost, path: keysPath, handle: authorized(r.accountOfKeys, r.createKey)},
		{method: http.MethodGet, path: key, handle: authorized(r.keyOf, r.getKey)},
		{method: http.MethodPut, path: key, handle: authorized(r.keyOf, r.updateKey)},
		{method: http.MethodDelete, path: key, handle: authorized(r.keyOf, r.deleteKey)},
	}
	for i := range routes {
		routes[i].scope = identity.ScopeAdmin
	}
	return routes
}

// account returns the account of the path if the caller can access it.
func (r directoryRoutes) account(c echo.Context) (identity.Account, error) {
	caller, err := r.auth.authenticateAnyAdmin(c)
	if err != nil {
		return identity.Account{}, err
	}
	return r.auth.visibleAccount(caller, c.Param("id"))
}

// own returns the error of a change of the caller's own account, user or key.
func own(what string) error {
	return fault.Conflict("%s: ask another administrator", what)
}

// writePage sends the page of a list that the query asks for, in the order of the
// keys, which are unique.
func writePage[T, U any](c echo.Context, list []T, key func(T) string, show func(T) U) error {
	q := report.NewQuery(c.QueryParams())
	page := report.Page[U]{Data: []U{}, PageSize: q.PageSize()}
	start, err := base64.RawURLEncoding.DecodeString(q.Get("start_key"))
	if err != nil {
		q.AddFault("start_key", "invalid", "must be a page's next_start_key")
	}
	if err := q.Err(); err != nil {
		return err
	}
	slices.SortFunc(list, func(a, b T) int { return strings.Compare(key(a), key(b)) })
	for _, one := range list {
		switch at := key(one); {
		case at < string(start):
			continue
		case len(page.Data) == page.PageSize:
			page.NextStartKey = base64.RawURLEncoding.EncodeToString([]byte(at))
			return writeJSON(c, http.StatusOK, page)
		}
		page.Data = append(page.Data, show(one))
	}
	return writeJSON(c, http.StatusOK, page)
}

// respondTagged is respond with the body's entity tag. A GET is answered with 304 if its
// If-None-Match has the tag.
func respondTagged(c echo.Context, status int, tag string, body any, err error) error {
	if err != nil {
		return err
	}
	c.Response().Header().Set("ETag", tag)
	if r := c.Request(); r.Method == http.MethodGet && entitytag.NotModified(r.Header.Get("If-None-Match"), tag) {
		c.Response().WriteHeader(http.StatusNotModified)
		return nil
	}
	return writeJSON(c, status, body)
}

// respondCreated is respondTagged with the location of the new object.
func respondCreated(c echo.Context, location, tag string, body any, err error) error {
	if err != nil {
		return err
	}
	c.Response().Header().Set("Location", location)
	return respondTagged(c, http.StatusCreated, tag, body, nil)
}

// readOnly reads a member that must be absent or equal to the stored value.
func (o *object) readOnly(name string, stored any) {
	if !o.Has(name) {
		return
	}
	equal := false
	switch stored := stored.(type) {
	case string:
		equal = o.String(name, optional) == stored
	case int64:
		equal = o.Int(name, optional) == stored
	}
	if !equal {
		o.fault(name, "read_only", "cannot be changed")
	}
}

// expiry reads a time in Unix seconds; 0 is the zero time, nil means that the member is
// absent.
func (o *object) expiry(name string) *time.Time {
	if !o.Has(name) {
		return nil
	}
	at := time.Time{}
	switch seconds := o.Int(name, optional); {
	case seconds < 0 || seconds > report.EndOfTime:
		o.fault(name, "out_of_range", "must be Unix seconds, of a year up to 9999")
	case seconds > 0:
		at = time.Unix(seconds, 0)
	}
	return &at
}
