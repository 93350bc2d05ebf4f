package api

import (
	"context"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"trunkline/config/aiprovider"
	"trunkline/identity"
	"trunkline/internal/fault"
	"trunkline/internal/wsframe"
)

// SessionAnnouncer stores the account and provider of a call before the call arrives.
type SessionAnnouncer interface {
	// Announce stores a call that will arrive over AudioSocket within a limited time. The error
	// is fault.KindConflict if the UUID has been announced already.
	Announce(ctx context.Context, a aiprovider.Announcement) error
}

// MediaSocket upgrades a request to a WebSocket that carries one call's audio to the
// provider and back. The caller has been authorized.
type MediaSocket interface {
	// ServeMedia upgrades the request and carries the call until it ends. An error means that the
	// handshake was refused and nothing was written.
	ServeMedia(w http.ResponseWriter, r *http.Request, p aiprovider.Provider) error
}

type aiSessionRoutes struct {
	providers AIProviderOpener
	announcer SessionAnnouncer
	media     MediaSocket
	auth      auth
}

func (r aiSessionRoutes) handleAnnounce(c echo.Context, caller *identity.Principal) error {
	body, err := decode(c)
	if err != nil {
		return err
	}

	announcement, err := readAnnouncement(body)
	if err != nil {
		return err
	}

	provider, err := r.provider(c, caller, announcement.ProviderID)
	if err != nil {
		return err
	}

	announcement.AccountID = provider.AccountID
	if err := r.announcer.Announce(c.Request().Context(), announcement); err != nil {
		return err
	}

	return writeJSON(c, http.StatusCreated, struct {
		ProviderID string `json:"provider_id"`
		UUID       string `json:"uuid"`
	}{announcement.ProviderID, announcement.UUID})
}

func readAnnouncement(body *jsonObject) (aiprovider.Announcement, error) {
	a := aiprovider.Announcement{
		ProviderID:     body.String("provider_id", required),
		UUID:           strings.ToLower(body.String("uuid", required)),
		CallID:         body.callText("callId"),
		OtherLegCallID: body.callText("otherLegCallId"),
		CallerIDNumber: body.callText("callerIdNumber"),
		CalleeIDNumber: body.callText("calleeIdNumber"),
	}

	// uuid.Parse also accepts other forms, which would not match the UUID of the call.
	id, err := uuid.Parse(a.UUID)
	if a.UUID != "" && (err != nil || id.String() != a.UUID) {
		body.fault("uuid", "invalid", "must be a UUID such as 6f1c0a6e-5f0e-4c1b-9f5c-de0c5a2f7d2a")
	}

	return a, body.Err(invalidBody)
}

const maxCallTextLength = 128 // Unicode characters in a call's id or number

// callText reads an optional id or number of a call.
func (o *jsonObject) callText(name string) string {
	text := o.String(name, optional)
	if utf8.RuneCountInString(text) > maxCallTextLength {
		o.fault(name, "too_long", "must have at most 128 characters")
	}
	if strings.ContainsFunc(text, unicode.IsControl) {
		o.fault(name, "invalid", "must not have control characters")
	}
	return text
}

// mediaPath is the path of the media WebSocket.
const mediaPath = "/media/v1/:provider_id"

func (r aiSessionRoutes) handleSocket(c echo.Context, caller *identity.Principal) error {
	provider, err := r.provider(c, caller, c.Param("provider_id"))
	if err != nil {
		return err
	}

	if !wsframe.RequireHandshake(c.Response(), c.Request()) {
		return fault.New(fault.KindUpgrade, "This path is a WebSocket: upgrade the connection")
	}
	if err := r.media.ServeMedia(c.Response(), c.Request(), provider); err != nil {
		return err
	}

	// The connection was hijacked; access log and metrics read these fields.
	c.Response().Status, c.Response().Committed = http.StatusSwitchingProtocols, true
	return nil
}

// mediaCaller authenticates the caller of a media socket. A media server that cannot set
// headers sends its token or API key in the parameter token of the query.
func (r aiSessionRoutes) mediaCaller(c echo.Context) (*identity.Principal, error) {
	sent, err := requestCredentials(c.Request())
	if err != nil {
		return nil, err
	}

	queryToken := c.QueryParam("token")
	switch {
	case queryToken == "":
		return r.auth.authenticateAny(c)
	case sent != credentials{}:
		return nil, fault.Unauthenticated("Send one credential only")
	}

	ctx := c.Request().Context()
	if !strings.Contains(queryToken, ".") { // as every JWT does and no API key
		return r.auth.authenticateKeyText(c, queryToken)
	}

	caller, err := r.auth.tokens.Authenticate(ctx, queryToken, identity.AudienceAPI)
	if caller != nil {
		rememberCaller(c, caller)
	}
	if err != nil {
		return caller, err
	}

	return caller, admitRole(c, caller)
}

// provider returns the provider with the id. Returns fault.KindNotFound if the caller
// cannot access its account, or if X-Account-ID is another account.
func (r aiSessionRoutes) provider(c echo.Context, caller *identity.Principal, id string) (aiprovider.Provider, error) {
	provider, err := r.providers.Open(c.Request().Context(), id)
	if err != nil {
		return aiprovider.Provider{}, err
	}

	headerAccount := c.Request().Header.Get("X-Account-ID")
	if !r.auth.accounts.Tree().Contains(caller.AccountID, provider.AccountID) ||
		headerAccount != "" && headerAccount != provider.AccountID {
		return aiprovider.Provider{}, providerNotFound()
	}

	return provider, requireAdmin(caller)
}
