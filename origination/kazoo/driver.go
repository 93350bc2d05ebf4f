package kazoo

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"trunkline/event"
	"trunkline/internal/fault"
	"trunkline/internal/setting"
	"trunkline/origination"
	"trunkline/telephony/crossbar"
)

// Config has the settings, and fields that only tests set. Zero selects the default in a field's
// comment.
type Config struct {
	Settings
	// Timeout is the limit of one request; default 8 s.
	Timeout time.Duration
	// PollEvery is the interval of progress polls; default 2 s.
	PollEvery time.Duration
}

// Driver is an origination.Driver. It is safe for concurrent use.
type Driver struct {
	cfg      Config
	accounts map[string]string // our account ids to Kazoo's
	crossbar *crossbar.Client
	log      *slog.Logger

	mu    sync.Mutex
	calls map[string]*call // followed calls by the returned id
}

// New returns a driver. It does not connect before its first call.
func New(cfg Config, client *http.Client, log *slog.Logger) (*Driver, error) {
	accounts, err := cfg.accountMap()
	if err != nil {
		return nil, err
	}

	if err := setting.Validate("origination.kazoo", cfg.Settings); err != nil {
		return nil, err
	}

	cfg.Timeout = cmp.Or(cfg.Timeout, 8*time.Second)
	cfg.PollEvery = cmp.Or(cfg.PollEvery, 2*time.Second)
	return &Driver{cfg: cfg, accounts: accounts,
			crossbar: crossbar.New(cfg.URL, string(cfg.APIKey), cfg.Timeout, client), log: log,
			calls: map[string]*call{}},
		nil
}

// accountPath returns the path of the account's resources.
func (d *Driver) accountPath(ours string) string {
	id, mapped := d.accounts[ours]
	if !mapped {
		id = ours
	}
	return crossbar.AccountPath(id)
}

// Originate implements origination.Driver.
func (d *Driver) Originate(ctx context.Context, order origination.Order) (origination.Placed, error) {
	var placed origination.Placed
	resource := order.ClickToCallID
	if resource == "" {
		created, err := d.provision(ctx, order)
		if err != nil {
			return placed, err
		}
		placed.ClickToCallID, resource = created, created
	}

	answer, err := d.connect(ctx, order, resource)
	if errors.Is(err, errNotFound) && placed.ClickToCallID == "" {
		// The document was deleted on the platform; create it again, once.
		placed.ClickToCallID, err = d.provision(ctx, order)
		if err != nil {
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

// clickToCallResource is the clicktocall document of a user. SIPHeaders mark the leg to the destination in the
// call records (docs/calls.md).
type clickToCallResource struct {
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
	err = d.request(ctx, http.MethodPut, d.accountPath(order.AccountID)+"/clicktocall", clickToCallResource{
		Name: "trunkline " + order.UserID, Extension: order.Extension, PresenceID: order.Extension,
		DialFirst: "extension", AuthRequired: true,
		SIPHeaders: map[string]string{event.SIPHeaderCallType: event.CallTypeClickToCall},
	}, &made)
	if err != nil {
		return "", err
	}

	if !origination.ValidID(made.ID) {
		return "", fault.New(fault.KindRefused, "The platform made a click-to-call resource without an id")
	}

	return made.ID, nil
}

// connectResponse is the response to connect in any version.
type connectResponse struct {
	Origination jsonText `json:"origination_call_id"`
	Outbound    jsonText `json:"outbound_call_id"`
	Call        jsonText `json:"call_id"`
}

func (c connectResponse) id() string {
	for _, id := range []jsonText{c.Origination, c.Outbound, c.Call} {
		if origination.ValidID(string(id)) {
			return string(id)
		}
	}
	return ""
}

// connect rings the owner. It is a POST, which no HTTP layer repeats.
func (d *Driver) connect(ctx context.Context, order origination.Order,
	resource string) (answer connectResponse, err error) {
	path := d.accountPath(order.AccountID) + "/clicktocall/" + url.PathEscape(resource) + "/connect?contact=" +
		url.QueryEscape(order.Destination)
	err = d.request(ctx, http.MethodPost, path, map[string]string{"contact": order.Destination}, &answer)
	if errors.Is(err, errNotJSON) {
		err = nil // the call was accepted nevertheless
	}
	return answer, err
}
