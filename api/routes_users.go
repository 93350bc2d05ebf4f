package api

import (
	"crypto/rand"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"trunkline/identity"
	"trunkline/internal/fault"
)

// userView is the JSON of a user in responses. Only the response to its creation has a
// generated password.
type userView struct {
	userFields
	limitsView
	OIDCSubject string `json:"oidc_subject,omitempty"`
	CreatedAt   int64  `json:"created_at"` // Unix seconds
	Password    string `json:"password,omitempty"`
}

// limitsView is the JSON of the queues or agents to which a role is limited.
type limitsView struct {
	QueueIDs []string `json:"queue_ids,omitempty"`
	AgentIDs []string `json:"agent_ids,omitempty"`
}

// readLimits reads queue_ids and agent_ids.
func readLimits(body *jsonObject) identity.Limits {
	return identity.Limits{QueueIDs: body.Strings("queue_ids", optional), AgentIDs: body.Strings("agent_ids", optional)}
}

// readNewLimits is readLimits for a change of a user or key, which had the role and the limits before:
// with the same role absent lists stay, so that a client that does not know them widens no rights.
func readNewLimits(body *jsonObject, role, roleBefore identity.Role, limitsBefore identity.Limits) identity.Limits {
	hasQueues, hasAgents := body.Has("queue_ids"), body.Has("agent_ids") // Has is false for what was read
	read := readLimits(body)
	if role == roleBefore && !hasQueues {
		read.QueueIDs = limitsBefore.QueueIDs
	}
	if role == roleBefore && !hasAgents {
		read.AgentIDs = limitsBefore.AgentIDs
	}
	return read
}

func viewUser(u identity.User) userView {
	return userView{userFields: viewUserFields(u), limitsView: limitsView(u.Limits), OIDCSubject: u.OIDCSubject,
		CreatedAt: u.CreatedAt.Unix()}
}

// userPath returns the path of a user.
func userPath(u identity.User) string { return accountsPath + "/" + u.AccountID + "/users/" + u.ID }

// pathUser authenticates the caller and returns the user in the path. Returns
// fault.KindNotFound if the caller cannot access it.
func (r directoryRoutes) pathUser(c echo.Context) (identity.User, error) {
	account, err := r.pathAccount(c)
	if err != nil {
		return identity.User{}, err
	}

	found, err := r.directory.FindUser(c.Request().Context(), c.Param("user"))
	if fault.KindOf(err) == fault.KindNotFound || err == nil && found.AccountID != account.ID {
		return identity.User{}, fault.NotFound("User not found")
	}

	return found, err
}

func (r directoryRoutes) handleListUsers(c echo.Context, account identity.Account) error {
	users, err := r.directory.ListUsers(c.Request().Context(), account.ID)
	if err != nil {
		return err
	}
	return writePage(c, users, func(u identity.User) string { return strings.ToLower(u.Username) },
		func(u identity.User) []string { return []string{u.ID, u.Username, u.PresenceID} }, viewUser)
}

func (r directoryRoutes) handleCreateUser(c echo.Context, account identity.Account) error {
	body, err := decode(c)
	if err != nil {
		return err
	}

	n := identity.NewUser{
		Account: account.ID, Username: body.String("username", required),
		PresenceID:  body.String("presence_id", optional),
		Role:        identity.Role(body.String("role", optional)),
		OIDCSubject: body.String("oidc_subject", requirement(body.Has("oidc_subject"))),
		Limits:      readLimits(body), By: callerOf(c),
	}

	var generated string
	n.Password = body.String("password", requirement(body.Has("password")))
	if n.Password == "" && n.OIDCSubject == "" {
		generated = rand.Text()
		n.Password = generated
	}

	if err := body.Err("Invalid user"); err != nil {
		return err
	}

	created, err := r.directory.CreateUser(c.Request().Context(), n)

	view := viewUser(created)
	view.Password = generated
	return respondCreated(c, userPath(created), created.ETag(), view, err)
}

func (r directoryRoutes) handleGetUser(c echo.Context, found identity.User) error {
	return respondTagged(c, http.StatusOK, found.ETag(), viewUser(found), nil)
}

// handleUpdateUser changes the role, the extension and, if the body has one, the password.
func (r directoryRoutes) handleUpdateUser(c echo.Context, found identity.User) error {
	body, err := decode(c)
	if err != nil {
		return err
	}

	body.readOnly("id", found.ID)
	body.readOnly("account_id", found.AccountID)
	body.readOnly("username", found.Username)
	body.readOnly("created_at", found.CreatedAt.Unix())
	body.readOnly("oidc_subject", found.OIDCSubject)

	u := identity.UserUpdate{
		Role: identity.Role(body.String("role", required)), PresenceID: body.String("presence_id", optional),
		IfMatch: c.Request().Header.Get("If-Match"), By: callerOf(c),
	}
	u.Limits = readNewLimits(body, u.Role, found.Role, found.Limits)

	if body.Has("password") {
		password := body.String("password", required)
		u.Password = &password
	}

	if err := body.Err("Invalid user"); err != nil {
		return err
	}

	if found.ID == callerOf(c).UserID && u.Role != found.Role {
		return errOwnObject("Your own role cannot be changed")
	}
	if found.ID == callerOf(c).UserID && u.Password != nil {
		return fault.Conflict("Your own password is changed with PUT /ucp/v2/password, which asks for the current one")
	}

	stored, err := r.directory.UpdateUser(c.Request().Context(), found.ID, u)
	return respondTagged(c, http.StatusOK, stored.ETag(), viewUser(stored), err)
}

func (r directoryRoutes) handleDeleteUser(c echo.Context, found identity.User) error {
	if found.ID == callerOf(c).UserID {
		return errOwnObject("Your own user cannot be deleted")
	}
	return noContent(c, r.directory.DeleteUserByID(c.Request().Context(), found.ID, c.Request().Header.Get("If-Match")))
}

// checkOTPChange returns fault.KindConflict for the caller's own one-time passwords: a
// stolen session would make itself permanent. Whoever may not give the user credentials
// gets fault.KindForbidden.
func (r directoryRoutes) checkOTPChange(c echo.Context, found identity.User) error {
	if found.ID == callerOf(c).UserID {
		return fault.Conflict(
			"Your own one-time passwords are replaced with POST /ucp/v2/otp, which asks for the current one, and deleted by another administrator")
	}
	return r.directory.CheckCredentialGrant(callerOf(c), found.Role)
}

// handleEnrolOTP creates a one-time password secret for a user, which needs no confirmation.
func (r directoryRoutes) handleEnrolOTP(c echo.Context, found identity.User) error {
	if err := r.checkOTPChange(c, found); err != nil {
		return err
	}

	enrolment, codes, err := r.otps.EnrolOTP(c.Request().Context(), found.AccountID, found.Username)
	return respond(c, http.StatusCreated, struct {
		Secret        string   `json:"secret"`
		URI           string   `json:"uri"`
		RecoveryCodes []string `json:"recovery_codes"`
	}{enrolment.Secret, enrolment.URI, codes}, err)
}

func (r directoryRoutes) handleDeleteOTP(c echo.Context, found identity.User) error {
	if err := r.checkOTPChange(c, found); err != nil {
		return err
	}
	return noContent(c, r.otps.DeleteOTP(c.Request().Context(), found.AccountID, found.Username))
}
