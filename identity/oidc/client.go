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

	cached     atomic.Pointer[metadata] // never nil
	discoverMu sync.Mutex
	backoff    retry.Backoff // guarded by discoverMu
}

// metadata is the result of a discovery.
type metadata struct {
	provider      *provider // nil if no discovery has succeeded yet
	nextDiscovery time.Time // time of the next discovery
	err           error     // of this discovery
}

// provider has what the client needs of the provider's metadata.
type provider struct {
	keys   oidc.KeySet
	oauth2 oauth2.Config
}

const discoveryInterval = time.Hour

// New returns a client. It sends no request. The settings must be valid and have an
// issuer.
func New(s Settings, now func() time.Time, reg prometheus.Registerer, log *slog.Logger) *Client {
	c := &Client{settings: s, now: now, log: log, backoff: retry.Backoff{First: time.Second, Max: time.Minute}}
	c.http, c.transport = newHTTPClient(newMetrics(reg))
	c.cached.Store(&metadata{})
	return c
}

// currentProvider returns the provider, after a discovery if one is due. Returns
// fault.KindUnavailable if no discovery has succeeded.
func (c *Client) currentProvider(ctx context.Context) (*provider, error) {
	cached := c.cached.Load()
	if !c.now().Before(cached.nextDiscovery) {
		// Only the first discovery is waited for: later ones replace metadata that is still of use.
		if cached.provider == nil {
			c.discoverMu.Lock()
		} else if !c.discoverMu.TryLock() { // another request is reading the metadata
			return cached.provider, nil
		}
		defer c.discoverMu.Unlock()

		cached = c.cached.Load()
		if !c.now().Before(cached.nextDiscovery) {
			cached = c.discover(ctx, cached.provider)
			c.cached.Store(cached)
		}
	}

	if cached.provider == nil {
		return nil, fault.Unavailable(cached.err, cached.nextDiscovery.Sub(c.now()),
			"The provider of auth.oidc.issuer cannot be used now: its metadata cannot be read")
	}

	return cached.provider, nil
}

// discover reads the metadata. If that fails, the result has the provider previous.
func (c *Client) discover(ctx context.Context, previous *provider) *metadata {
	// other requests use the result too; c.http has a timeout
	ctx = oidc.ClientContext(context.WithoutCancel(ctx), c.http)
	discovered, err := oidc.NewProvider(ctx, c.settings.Issuer)
	if err == nil && (discovered.Endpoint().AuthURL == "" || discovered.Endpoint().TokenURL == "") {
		err = errors.New("the provider's metadata has no authorization or token endpoint")
	}
	if err != nil {
		err = truncateError(err)
		wait := c.backoff.Next()
		c.log.WarnContext(ctx, "OpenID Connect provider's metadata not read", "issuer", c.settings.Issuer, "error", err,
			"again_in", wait)
		return &metadata{previous, c.now().Add(wait), err}
	}

	c.backoff.Reset()
	var methods struct {
		Token []string `json:"token_endpoint_auth_methods_supported"`
	}
	endpoint := discovered.Endpoint()
	endpoint.AuthStyle = oauth2.AuthStyleInHeader // the default of the metadata's field
	err = discovered.Claims(&methods)
	if err == nil && len(methods.Token) > 0 && !slices.Contains(methods.Token, "client_secret_basic") ||
		c.settings.ClientSecret == "" {
		endpoint.AuthStyle = oauth2.AuthStyleInParams
	}

	return &metadata{provider: &provider{
		keys: oidc.NewRemoteKeySet(ctx, jwksURI(discovered)),
		oauth2: oauth2.Config{
			ClientID: c.settings.ClientID, ClientSecret: string(c.settings.ClientSecret), Endpoint: endpoint,
			RedirectURL: c.settings.RedirectURL, Scopes: []string{c.settings.Scope},
		},
	}, nextDiscovery: c.now().Add(discoveryInterval)}
}

// jwksURI returns jwks_uri of the metadata, "" if there is none.
func jwksURI(p *oidc.Provider) string {
	var keys struct {
		URL string `json:"jwks_uri"`
	}
	if err := p.Claims(&keys); err != nil {
		return ""
	}
	return keys.URL
}

const maxErrorBytes = 300

// truncateError bounds the text of an error, which can contain a response of the
// provider, to maxErrorBytes.
func truncateError(err error) error {
	text := err.Error()
	if len(text) > maxErrorBytes {
		return errors.New(strings.ToValidUTF8(text[:maxErrorBytes], "") + "…")
	}
	return err
}
