package api

import (
	"context"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"trunkline/fanout"
	"trunkline/identity"
	"trunkline/internal/fault"
)

// Channel is the events channel.
type Channel interface {
	Subscriptions
	// Health returns the node's status and the number of connections of the cluster, or of this
	// node while Redis is unavailable. It does no I/O.
	Health(ctx context.Context) (status fanout.Status, total int)
	// Stats lists the connections of the accounts that the caller has access to.
	Stats(ctx context.Context, caller *identity.Principal) []fanout.Client
	// Snapshot returns the agents, calls and queues of the principal's accounts that match its
	// filter, regardless of event types and names. It returns fault.KindUnavailable while a
	// partition is behind.
	Snapshot(ctx context.Context, caller *identity.Principal) (*fanout.Snapshot, error)
}

// Subscriptions authenticates and serves subscribers. If it returns an error, the request
// was refused and nothing was written.
type Subscriptions interface {
	// ServeWebSocket upgrades the request to a WebSocket and subscribes it; see docs/channel.md. It
	// writes nothing before it returns an error.
	ServeWebSocket(w http.ResponseWriter, r fanout.Request) error
	// ServeEventStream subscribes the request to server-sent events and serves it until it ends. It
	// writes nothing before it returns an error.
	ServeEventStream(w http.ResponseWriter, r fanout.Request) error
}

// ChannelLogins issues the channel's tokens for passwords and the provider's tokens.
type ChannelLogins interface {
	// EventsLogin checks the credentials and returns a channel token, which is for the events
	// audience and has the filter f; an empty f does not restrict. An account of f that the user
	// cannot access and one that does not exist cause the same error.
	EventsLogin(ctx context.Context, c identity.LoginRequest,
		f identity.Filter) (token string, expiresIn time.Duration, err error)
	// IsProviderToken reports whether a provider is configured and the token names an issuer other
	// than Trunkline. The token is not verified.
	IsProviderToken(token string) bool
	// CheckProviderToken checks that ChannelLoginByToken would accept the token, which it counts and
	// writes to the audit log where not. Like a login it creates or updates the user.
	CheckProviderToken(ctx context.Context, token, address string) error
	// ChannelLoginByToken is EventsLogin with an ID or access token of the OpenID Connect provider.
	// The channel token expires with that token at the latest.
	ChannelLoginByToken(ctx context.Context, token, address string,
		f identity.Filter) (channel string, expiresIn time.Duration, err error)
}

// ChannelTokens issues the channel's tokens for portal tokens and API keys, and revokes them.
type ChannelTokens interface {
	// EventsExchange issues a channel token for the principal of a portal token, or of an API key
	// with identity.ScopeSubscribe, at the address. The channel token ends when the portal token's session
	// ends, or when the key expires or is deleted.
	EventsExchange(ctx context.Context, p *identity.Principal, address string,
		f identity.Filter) (token string, expiresIn time.Duration, err error)
	// EventsLogout revokes the principal's channel token, and nothing that it was issued from. The holder
	// of a channel token may call it, in any role. Returns fault.KindUnavailable while the database is
	// away: the token stays valid.
	EventsLogout(ctx context.Context, p *identity.Principal) error
}

type channelRoutes struct {
	channel Channel
	logins  ChannelLogins
	tokens  ChannelTokens
	auth    auth
}

// subscribeParams are the parameters of a socket, streamParams of a stream, which always has cursors.
var (
	subscribeParams = []string{"token", "since", "cursor"}
	streamParams    = append([]string{"until"}, subscribeParams...)
)

func (r channelRoutes) handleLogin(c echo.Context) error {
	body, err := r.decodeLogin(c)
	if err != nil {
		return err
	}

	login, err := r.chooseLogin(c, body)
	if err != nil {
		return err
	}

	filter := readFilter(body)
	if err := body.Err(invalidBody); err != nil {
		return err
	}

	token, expiresIn, err := login(filter)
	return respond(c, http.StatusOK, struct {
		AccessToken string `json:"access_token"`
		ExpiresIn   int64  `json:"expires_in"`
	}{token, seconds(expiresIn)}, err)
}

// decodeLogin is decode for a login. The body of one with a username and password has the
// limits of strangers. A larger body is read only after the token or key in the request's
// header was accepted.
func (r channelRoutes) decodeLogin(c echo.Context) (*jsonObject, error) {
	if err := checkContentType(c.Request().Header); err != nil {
		return nil, err
	}

	reader := newBodyReader(c)
	err := reader.read()
	large := fault.KindOf(err) == fault.KindTooLarge && hasCredential(c.Request())
	if large {
		err = r.authenticateHeader(c)
		if err == nil {
			reader.raiseLimits()
			err = reader.read()
		}
	}

	if err != nil {
		return nil, err
	}

	body, err := reader.parse()
	if err != nil {
		return nil, err
	}

	body = body.withoutNulls()
	if large && hasPassword(body) {
		return nil, fault.New(fault.KindTooLarge, "The body of a login with a password is over 16 KiB")
	}

	return body, nil
}

// authenticateHeader checks the token of the OpenID Connect provider, portal token or API
// key in the request's header.
func (r channelRoutes) authenticateHeader(c echo.Context) error {
	sent, err := requestCredentials(c.Request())
	if err != nil {
		return err
	}
	if r.logins.IsProviderToken(sent.token) {
		return r.logins.CheckProviderToken(c.Request().Context(), sent.token, c.RealIP())
	}
	_, err = r.auth.authenticateAny(c)
	return err
}

// chooseLogin returns the login for the credentials of the request: username and password
// in the body, or else a token of the OpenID Connect provider, a portal token or an API
// key.
func (r channelRoutes) chooseLogin(c echo.Context,
	body *jsonObject) (login func(identity.Filter) (token string, expiresIn time.Duration, err error), err error) {
	if hasPassword(body) || !hasCredential(c.Request()) {
		credentials := readLogin(body, c)
		return func(f identity.Filter) (string, time.Duration, error) {
			return r.logins.EventsLogin(c.Request().Context(), credentials, f)
		}, nil
	}

	sent, err := requestCredentials(c.Request())
	if err == nil && r.logins.IsProviderToken(sent.token) {
		return func(f identity.Filter) (string, time.Duration, error) {
			return r.logins.ChannelLoginByToken(c.Request().Context(), sent.token, c.RealIP(), f)
		}, nil
	}

	caller, err := r.auth.authenticateAny(c)
	return func(f identity.Filter) (string, time.Duration, error) {
		return r.tokens.EventsExchange(c.Request().Context(), caller, c.RealIP(), f)
	}, err
}

func (r channelRoutes) handleLogout(c echo.Context, caller *identity.Principal) error {
	return noContent(c, r.tokens.EventsLogout(c.Request().Context(), caller))
}

func (r channelRoutes) handleSocket(c echo.Context) error {
	if err := r.channel.ServeWebSocket(c.Response(), subscriber(c)); err != nil {
		return r.rememberRefused(c, err)
	}
	// The connection was hijacked; access log and metrics read these fields.
	c.Response().Status, c.Response().Committed = http.StatusSwitchingProtocols, true
	return nil
}

func (r channelRoutes) handleStream(c echo.Context) error {
	return r.rememberRefused(c, r.channel.ServeEventStream(c.Response(), subscriber(c)))
}

// rememberRefused stores the caller of a subscription that was refused with err, 403, for the
// audit log. It returns err.
func (r channelRoutes) rememberRefused(c echo.Context, err error) error {
	if fault.KindOf(err) != fault.KindForbidden {
		return err
	}

	token := c.QueryParam("token")
	sent, invalid := requestCredentials(c.Request())
	if invalid == nil && sent.token != "" {
		token = sent.token
	}

	p, _ := r.auth.tokens.Authenticate(c.Request().Context(), token) // refused before
	if p != nil {
		rememberCaller(c, p)
	}

	return err
}

func subscriber(c echo.Context) fanout.Request {
	return fanout.Request{HTTP: c.Request(), Address: c.RealIP()}
}

func (r channelRoutes) handleHealth(c echo.Context) error {
	status, total := r.channel.Health(c.Request().Context())
	return writeJSON(c, http.StatusOK, struct {
		Status           fanout.Status `json:"status"`
		TotalConnections int           `json:"total_connections"`
		Timestamp        int64         `json:"timestamp"` // Unix seconds
	}{status, total, time.Now().Unix()})
}

func (r channelRoutes) handleStats(c echo.Context, caller *identity.Principal) error {
	clients := r.channel.Stats(c.Request().Context(), caller)
	if clients == nil {
		clients = []fanout.Client{} // an empty list, never null
	}
	return writeJSON(c, http.StatusOK, struct {
		TotalConnections int             `json:"total_connections"`
		Clients          []fanout.Client `json:"clients"`
		Timestamp        int64           `json:"timestamp"` // Unix seconds
	}{len(clients), clients, time.Now().Unix()})
}

func (r channelRoutes) handleSnapshot(c echo.Context, caller *identity.Principal) error {
	snapshot, err := r.channel.Snapshot(c.Request().Context(), caller)
	return respond(c, http.StatusOK, snapshot, err)
}

// routes returns one set of paths of the events channel.
func (r channelRoutes) routes(prefix, socket string) []route {
	return []route{
		{method: http.MethodPost, path: prefix + "/login", handle: r.handleLogin, also: limitedRoles,
			scope: identity.ScopeSubscribe},
		{method: http.MethodPost, path: prefix + "/logout",
			handle: authorized(r.auth.authenticateBearer(identity.AudienceEvents), r.handleLogout), also: limitedRoles},
		{method: http.MethodGet, path: socket, handle: r.handleSocket, query: subscribeParams, longLived: true},
		{method: http.MethodGet, path: prefix + "/stream", handle: r.handleStream, query: streamParams,
			longLived: true},
		{method: http.MethodGet, path: prefix + "/health", handle: r.handleHealth},
		{method: http.MethodGet, path: prefix + "/stats",
			handle: authorized(r.auth.authenticateBearer(identity.AudienceEvents, identity.AudienceAPI), r.handleStats),
			also:   limitedRoles},
		{method: http.MethodGet, path: prefix + "/snapshot",
			handle: authorized(r.auth.authenticateBearer(identity.AudienceEvents), r.handleSnapshot),
			also:   limitedRoles},
	}
}
