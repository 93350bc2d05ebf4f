package kazoo

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"trunkline/internal/fault"
	"trunkline/origination"
)

// Config has the driver's settings.
type Config struct {
	URL    string // of Crossbar, such as https://kazoo.example.com:8443
	APIKey string // of an account that has access to those of Accounts
	// Accounts maps our account ids to Kazoo's; an id that is absent is the same in Kazoo.
	Accounts map[string]string
	// Timeout is the limit of one request; default 8 s.
	Timeout time.Duration
	// PollEvery is the interval of progress polls; default 2 s.
	PollEvery time.Duration
}

func (c Config) withDefaults() Config {
	c.URL = strings.TrimRight(c.URL, "/")
	if c.Timeout == 0 {
		c.Timeout = 8 * time.Second
	}
	if c.PollEvery == 0 {
		c.PollEvery = 2 * time.Second
	}
	return c
}

// Validate checks c.
func (c Config) Validate() error {
	parsed, err := url.Parse(c.URL) // its error could contain a password
	switch {
	case err != nil || parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Host == "" || parsed.User != nil:
		return errors.New("kazoo: the url must be like https://kazoo.example.com:8443")
	case c.APIKey == "":
		return errors.New("kazoo: the API key is missing")
	case c.Timeout < 0 || c.PollEvery < 0:
		return errors.New("kazoo: a duration is negative")
	}
	return nil
}

// Driver is an origination.Driver. It is safe for concurrent use.
type Driver struct {
	cfg      Config
	crossbar *crossbar
	log      *slog.Logger

	mu    sync.Mutex
	calls map[string]*call // followed calls by the returned id
}

// New returns a driver. It does not connect before its first call.
func New(cfg Config, client *http.Client, log *slog.Logger) (*Driver, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	return &Driver{cfg: cfg, crossbar: newCrossbar(cfg, client), log: log, calls: map[string]*call{}}, nil
}

// account returns the path of the account's resources.
func (d *Driver) account(ours string) string {
	id, mapped := d.cfg.Accounts[ours]
	if !mapped {
		id = ours
	}
	return "/v2/accounts/" + url.PathEscape(id)
}

// Originate implements origination.Driver.
func (d *Driver) Originate(ctx context.Context, order origination.Order) (origination.Placed, error) {
	var placed origination.Placed
	resource := order.ClickToCallID
	if resource == "" {
		made, err := d.provision(ctx, order)
		if err != nil {
			return placed, err
		}
		placed.ClickToCallID, resource = made, made
	}
	answer, err := d.connect(ctx, order, resource)
	if errors.Is(err, errNotThere) && placed.ClickToCallID == "" {
		// The document was deleted on the platform; create it again, once.
		if placed.ClickToCallID, err = d.provision(ctx, order); err != nil {
			return placed, err
		}
		resource = placed.ClickToCallID
		answer, err = d.connect(ctx, order, resource)
	}
	if err != nil {
		return placed, err
	}
	placed.CallID = answer.id()
	if placed.CallID != "" {
		order.ClickToCallID = resource
		d.track(placed.CallID, order, origination.Accepted)
	}
	return placed, nil
}

// resource is the clicktocall document of a user. SIPHeaders mark the leg to the destination in the
// call records (docs/calls.md).
type resource struct {
	Name         string            `json:"name"`
	Extension    string            `json:"extension"`
	PresenceID   string            `json:"presence_id"`
	DialFirst    string            `json:"dial_first"`
	AuthRequired bool              `json:"auth_required"`
	SIPHeaders   map[string]string `json:"custom_sip_headers"`
}

// provision creates the user's clicktocall document.
func (d *Driver) provision(ctx context.Context, order origination.Order) (id string, err error) {
	var made struct {
		ID string `json:"id"`
	}
	err = d.crossbar.do(ctx, http.MethodPut, d.account(order.AccountID)+"/clicktocall", resource{
		Name: "trunkline " + order.UserID, Extension: order.Extension, PresenceID: order.Extension,
		DialFirst: "extension", AuthRequired: true, SIPHeaders: map[string]string{"svc_call_type": "clicktocall"},
	}, &made)
	if err != nil {
		return "", err
	}
	if !usable(made.ID) {
		return "", fault.New(fault.KindRefused, "The platform made a click-to-call resource without an id")
	}
	return made.ID, nil
}

// connected is the response to connect in any version.
type connected struct {
	Origination text `json:"origination_call_id"`
	Outbound    text `json:"outbound_call_id"`
	Call        text `json:"call_id"`
}

func (c connected) id() string {
	for _, one := range []text{c.Origination, c.Outbound, c.Call} {
		if usable(string(one)) {
			return string(one)
		}
	}
	return ""
}

// usable reports whether an id from Kazoo is valid.
func usable(id string) bool {
	return id != "" && len(id) <= 255 && !strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' })
}

// connect rings the owner. It is a POST, which no HTTP layer repeats.
func (d *Driver) connect(ctx context.Context, order origination.Order, resource string) (answer connected, err error) {
	path := d.account(order.AccountID) + "/clicktocall/" + url.PathEscape(resource) + "/connect?contact=" + url.QueryEscape(order.Destination)
	err = d.crossbar.do(ctx, http.MethodPost, path, map[string]string{"contact": order.Destination}, &answer)
	if errors.Is(err, errNotJSON) {
		err = nil // the call was accepted nevertheless
	}
	return answer, err
}
