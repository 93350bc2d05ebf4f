package api

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"trunkline/identity"
	"trunkline/internal/fault"
	"trunkline/internal/report"
)

// accountView is the JSON of an account in responses.
type accountView struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Domain    string `json:"domain"`
	ParentID  string `json:"parent_id,omitempty"` // absent from the caller's own account
	TimeZone  string `json:"time_zone,omitempty"` // IANA name; absent: UTC
	CreatedAt int64  `json:"created_at"`          // Unix seconds
}

func viewAccount(caller *identity.Principal, a identity.Account) accountView {
	view := accountView{ID: a.ID, Name: a.Name, Domain: a.Domain, TimeZone: a.TimeZone, CreatedAt: a.CreatedAt.Unix()}
	if a.ID != caller.AccountID {
		view.ParentID = a.ParentID
	}
	return view
}

func (r directoryRoutes) handleListAccounts(c echo.Context, caller *identity.Principal) error {
	tree := r.auth.accounts.Tree()
	var visible []identity.Account
	for _, a := range tree.Accounts() {
		if tree.Contains(caller.AccountID, a.ID) {
			visible = append(visible, a)
		}
	}

	return writePage(c, visible, func(a identity.Account) string { return a.ID },
		func(a identity.Account) []string { return []string{a.ID, a.Name, a.Domain} },
		func(a identity.Account) accountView { return viewAccount(caller, a) })
}

func (r directoryRoutes) handleCreateAccount(c echo.Context, caller *identity.Principal) error {
	body, err := decode(c)
	if err != nil {
		return err
	}

	n := identity.NewAccount{
		ID: body.String("id", optional), Name: body.String("name", required), Domain: body.String("domain", required),
		Parent: caller.AccountID, TimeZone: body.String("time_zone", optional), By: caller,
	}

	if body.Has("parent_id") {
		n.Parent = body.String("parent_id", required)
	}

	r.checkParent(c, body, n.Parent)
	if err := body.Err("Invalid account"); err != nil {
		return err
	}

	created, err := r.directory.CreateAccount(c.Request().Context(), n)
	return respondCreated(c, accountsPath+"/"+created.ID, created.ETag(), viewAccount(caller, created), err)
}

// checkParent adds a fault to body if the caller cannot access the account parent.
func (r directoryRoutes) checkParent(c echo.Context, body *jsonObject, parent string) {
	if !r.auth.accounts.Tree().Contains(callerOf(c).AccountID, parent) {
		body.fault("parent_id", "unknown_account", "is not an account")
	}
}

func (r directoryRoutes) handleGetAccount(c echo.Context, account identity.Account) error {
	return respondTagged(c, http.StatusOK, account.ETag(), viewAccount(callerOf(c), account), nil)
}

func (r directoryRoutes) handleUpdateAccount(c echo.Context, account identity.Account) error {
	body, err := decode(c)
	if err != nil {
		return err
	}

	body.readOnly("id", account.ID)
	body.readOnly("created_at", account.CreatedAt.Unix())
	u := identity.AccountUpdate{
		Name: body.String("name", required), Domain: body.String("domain", required), KeepParent: true,
		TimeZone: body.String("time_zone", optional), IfMatch: c.Request().Header.Get("If-Match"), By: callerOf(c),
	}

	if body.Has("parent_id") {
		if account.ID == callerOf(c).AccountID {
			return fault.Conflict("Your own account cannot be moved")
		}
		u.Parent, u.KeepParent = body.String("parent_id", required), false
		r.checkParent(c, body, u.Parent)
	}

	if err := body.Err("Invalid account"); err != nil {
		return err
	}

	stored, err := r.directory.UpdateAccount(c.Request().Context(), account.ID, u)
	return respondTagged(c, http.StatusOK, stored.ETag(), viewAccount(callerOf(c), stored), err)
}

// handleDeleteAccount deletes an account that has no accounts below it. With purge=now its data
// is deleted without waiting for the end of its retention.
func (r directoryRoutes) handleDeleteAccount(c echo.Context, account identity.Account) error {
	if account.ID == callerOf(c).AccountID {
		return errOwnObject("Your own account cannot be deleted")
	}

	remove := r.directory.DeleteAccount
	q := report.NewQuery(c.QueryParams())
	switch q.Get("purge") {
	case "":
	case "now":
		remove = r.directory.DeleteAndPurgeAccount
	default:
		q.AddFault("purge", "unsupported", "must be now, or absent")
	}

	if err := q.Err(); err != nil {
		return err
	}

	_, err := remove(c.Request().Context(), account.ID, c.Request().Header.Get("If-Match"))
	return noContent(c, err)
}
