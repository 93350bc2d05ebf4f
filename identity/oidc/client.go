package oidc

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/oauth2"

	"trunkline/internal/fault"
	"trunkline/internal/retry"
)

// Client is a client of the provider. It is safe for concurrent use.
type Client struct {
	settings  Settings
	now       func() time.Time
	log       *slog.Logger
	http      *http.Client
	transport *transport // of http

	known       atomic.Pointer[metadata]
	discovering sync.Mutex
	backoff     retry.Backoff // guarded by discovering
}

// metadata is the result of the last discovery.
type metadata struct {
	provider *provider // nil: it has never succeeded
	until    time.Time // time of the next discovery
	err      error     // of the last discovery
}

// provider is the provider as its metadata describes it.
type provider struct {
	keys   oidc.KeySet
	oauth2 oauth2.Config
}

const discoverEvery = time.Hour

// New returns a client. It sends no request. The settings must be valid and have an
// issuer.
func New(s Settings, now func() time.Time, reg prometheus.Registerer, log *slog.Logger) *Client {
	c := &Client{settings: s, now: now, log: log, backoff: retry.Backoff{First: time.Second, Max: time.Minute}}
	c.http, c.transport = newHTTPClient(newMetrics(reg))
	c.known.Store(&metadata{})
	return c
}

// current returns the provider, after a discovery if one is due. Returns
// fault.KindUnavailable if there is none.
func (c *Client) current(ctx context.Context) (*provider, error) {
	known := c.known.Load()
	if !c.now().Before(known.until) {
		if known.provider == nil {
			c.discovering.Lock()
		} else if !c.discovering.TryLock() { // another request is reading the metadata
			return known.provider, nil
		}
		defer c.discovering.Unlock()
		if known = c.known.Load(); !c.now().Before(known.until) {
			known = c.discover(ctx, known.provider)
			c.known.Store(known)
		}
	}
	if known.provider == nil {
		return nil, fault.Unavailable(known.err, known.until.Sub(c.now()), "The provider of auth.oidc.issuer cannot be used now: its metadata cannot be read")
	}
	return known.provider, nil
}

// discover reads the metadata. If that fails, before stays in use.
func (c *Client) discover(ctx context.Context, before *provider) *metadata {
	ctx = oidc.ClientContext(context.WithoutCancel(ctx), c.http) // its result is for other requests too; the client has a timeout
	found, err := oidc.NewProvider(ctx, c.settings.Issuer)
	if err == nil && (found.Endpoint().AuthURL == "" || found.Endpoint().TokenURL == "") {
		err = errors.New("the provider's metadata has no authorization or token endpoint")
	}
	if err != nil {
		err = brief(err)
		wait := c.backoff.Next()
		c.log.WarnContext(ctx, "OpenID Connect provider's metadata not read", "issuer", c.settings.Issuer, "error", err, "again_in", wait)
		return &metadata{before, c.now().Add(wait), err}
	}
	c.backoff.Reset()
	var methods struct {
		Token []string `json:"token_endpoint_auth_methods_supported"`
	}
	endpoint := found.Endpoint()
	endpoint.AuthStyle = oauth2.AuthStyleInHeader // the default of the metadata's field
	if err := found.Claims(&methods); err == nil && len(methods.Token) > 0 && !slices.Contains(methods.Token, "client_secret_basic") || c.settings.ClientSecret == "" {
		endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	return &metadata{provider: &provider{
		keys: oidc.NewRemoteKeySet(ctx, keysURL(found)),
		oauth2: oauth2.Config{
			ClientID: c.settings.ClientID, ClientSecret: string(c.settings.ClientSecret), Endpoint: endpoint,
			RedirectURL: c.settings.RedirectURL, Scopes: []string{c.settings.Scope},
		},
	}, until: c.now().Add(discoverEvery)}
}

// keysURL returns the metadata's jwks_uri, "" if there is none.
func keysURL(p *oidc.Provider) string {
	var keys struct {
		URL string `json:"jwks_uri"`
	}
	if err := p.Claims(&keys); err != nil {
		return ""
	}
	return keys.URL
}

const maxErrorText = 300

// brief bounds the text of an error, which can contain a response of the provider. It
// returns a short error unchanged.
func brief(err error) error {
	if text := err.Error(); len(text) > maxErrorText {
		return errors.New(strings.ToValidUTF8(text[:maxErrorText], "") + "…")
	}
	return err
}
