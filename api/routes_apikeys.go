package api

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"trunkline/identity"
	"trunkline/internal/fault"
)

// keyView is the JSON of an API key in responses. Only the response to its creation has the
// key itself.
type keyView struct {
	ID        string           `json:"id"`
	AccountID string           `json:"account_id"`
	Name      string           `json:"name"`
	Scopes    []identity.Scope `json:"scopes"`
	Role      identity.Role    `json:"role"`
	limitsView
	ExpiresAt int64  `json:"expires_at,omitempty"` // Unix seconds; absent: never
	CreatedAt int64  `json:"created_at"`           // Unix seconds
	Key       string `json:"key,omitempty"`
}

func viewKey(k identity.APIKey) keyView {
	view := keyView{ID: k.ID, AccountID: k.AccountID, Name: k.Name, Scopes: k.Scopes, Role: k.Role,
		limitsView: limitsView(k.Limits), CreatedAt: k.CreatedAt.Unix()}
	if !k.ExpiresAt.IsZero() {
		view.ExpiresAt = k.ExpiresAt.Unix()
	}
	return view
}

// pathKey authenticates the caller and returns the key in the path. Returns
// fault.KindNotFound if the caller cannot access its account, or if X-Account-ID is another
// account.
func (r directoryRoutes) pathKey(c echo.Context) (identity.APIKey, error) {
	caller, err := r.auth.authenticateAnyAdmin(c)
	if err != nil {
		return identity.APIKey{}, err
	}

	key, err := r.directory.FindAPIKey(c.Request().Context(), c.Param("id"))
	headerAccount := c.Request().Header.Get("X-Account-ID")
	if fault.KindOf(err) == fault.KindNotFound || err == nil &&
		(!r.auth.accounts.Tree().Contains(caller.AccountID, key.AccountID) ||
			headerAccount != "" && headerAccount != key.AccountID) {
		return identity.APIKey{}, fault.NotFound("API key not found")
	}

	return key, err
}

// keysAccount authenticates the caller and returns the account of X-Account-ID, or the
// caller's own if it is absent.
func (r directoryRoutes) keysAccount(c echo.Context) (identity.Account, error) {
	caller, err := r.auth.authenticateAnyAdmin(c)
	if err != nil {
		return identity.Account{}, err
	}
	return r.auth.namedOrOwnAccount(c, caller)
}

func (r directoryRoutes) handleListKeys(c echo.Context, account identity.Account) error {
	keys, err := r.directory.ListAPIKeys(c.Request().Context(), account.ID)
	if err != nil {
		return err
	}
	return writePage(c, keys,
		func(k identity.APIKey) string { return fmt.Sprintf("%020d.%s", k.CreatedAt.UnixMilli(), k.ID) },
		func(k identity.APIKey) []string { return []string{k.ID, k.Name} }, viewKey)
}

// readKey reads the members name and scopes. Absent scopes are nil.
func readKey(body *jsonObject, needScopes requirement) (name string, scopes []identity.Scope) {
	name = body.String("name", optional)
	if body.Has("scopes") || needScopes == required {
		scopes = []identity.Scope{}
		for _, scope := range body.Strings("scopes", needScopes) {
			scopes = append(scopes, identity.Scope(scope))
		}
	}
	return name, scopes
}

func (r directoryRoutes) handleCreateKey(c echo.Context, account identity.Account) error {
	body, err := decode(c)
	if err != nil {
		return err
	}

	n := identity.NewAPIKey{Account: account.ID, By: callerOf(c)}
	n.Name, n.Scopes = readKey(body, optional)
	n.Role, n.Limits = identity.Role(body.String("role", optional)), readLimits(body)
	at := body.expiry("expires_at")
	if at != nil {
		n.ExpiresAt = *at
	}
	if err := body.Err("Invalid API key"); err != nil {
		return err
	}

	key, created, err := r.directory.CreateAPIKey(c.Request().Context(), n)
	view := viewKey(created)
	view.Key = key

	return respondCreated(c, keysPath+"/"+created.ID, created.ETag(), view, err)
}

func (r directoryRoutes) handleGetKey(c echo.Context, key identity.APIKey) error {
	return respondTagged(c, http.StatusOK, key.ETag(), viewKey(key), nil)
}

func (r directoryRoutes) handleUpdateKey(c echo.Context, key identity.APIKey) error {
	body, err := decode(c)
	if err != nil {
		return err
	}

	body.readOnly("id", key.ID)
	body.readOnly("account_id", key.AccountID)
	body.readOnly("created_at", key.CreatedAt.Unix())
	u := identity.APIKeyUpdate{IfMatch: c.Request().Header.Get("If-Match"), By: callerOf(c)}
	u.Name, u.Scopes = readKey(body, required)
	u.Role = cmp.Or(identity.Role(body.String("role", optional)), key.Role)
	u.Limits = readNewLimits(body, u.Role, key.Role, key.Limits)
	at := body.expiry("expires_at")
	// An expiry that is sent back as it was read is kept, also if it has passed.
	if at != nil && at.Unix() != key.ExpiresAt.Unix() {
		u.ExpiresAt = at
	}
	if err := body.Err("Invalid API key"); err != nil {
		return err
	}

	if key.ID == callerOf(c).KeyID && !slices.Contains(u.Scopes, identity.ScopeAdmin) {
		return errOwnObject("The scope admin cannot be taken from the key in use")
	}

	stored, err := r.directory.UpdateAPIKey(c.Request().Context(), key.ID, u)
	return respondTagged(c, http.StatusOK, stored.ETag(), viewKey(stored), err)
}

func (r directoryRoutes) handleDeleteKey(c echo.Context, key identity.APIKey) error {
	if key.ID == callerOf(c).KeyID {
		return errOwnObject("The key in use cannot be deleted")
	}
	return noContent(c, r.directory.DeleteAPIKey(c.Request().Context(), key.ID, c.Request().Header.Get("If-Match")))
}
