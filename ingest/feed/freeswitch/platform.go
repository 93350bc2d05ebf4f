package freeswitch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"trunkline/format/freeswitch"
	"trunkline/ingest/feed"
	"trunkline/telephony/esl"
)

const (
	// idleAfter is the time without an event after which a connection is probed.
	idleAfter = 10 * time.Second
	// tableLag is the longest time by which the core's tables lag behind the events.
	tableLag = 1500 * time.Millisecond
	// commandTimeout is the timeout of a response, which arrives after the events that were sent before
	// it.
	commandTimeout = 10 * time.Second
	// refreshPause is the shortest time between the end of a lookup of agents and the next for an unknown agent.
	refreshPause = 5 * time.Second
)

// platform is one FreeSWITCH.
type platform struct {
	client          *esl.Client
	user            string
	keys            *freeswitch.LiveKeys
	accountVariable string // the setting account_variable
	useAccountcode  bool   // the setting use_accountcode
	listenBeep      bool   // the setting listen_beep
	listenBy        string // the setting listen_by
	eventList       eventList
	accounts        feed.Accounts
	log             *slog.Logger

	idleAfter, tableLag, refreshPause time.Duration
}

// New returns the platform of a feed of kind freeswitch.
func New(cfg feed.Config, deps feed.Deps) (feed.Platform, error) { return newPlatform(cfg, deps) }

func newPlatform(cfg feed.Config, deps feed.Deps) (*platform, error) {
	tlsConfig, err := cfg.TLS.Load()
	if err != nil {
		return nil, err
	}

	client, err := esl.New(esl.Config{
		Address: cfg.Address, User: cfg.User, Password: string(cfg.Password), TLS: tlsConfig,
		Raw: true, CommandTimeout: commandTimeout, MaxMessage: maxResponseBytes,
	}, esl.Deps{Log: deps.Log, Panics: deps.Panics})
	if err != nil {
		return nil, err
	}

	return &platform{
		client: client, user: cfg.User, keys: freeswitch.NewLiveKeys(cfg.AccountVariable, cfg.UseAccountcode),
		accountVariable: cfg.AccountVariable, useAccountcode: cfg.UseAccountcode, listenBeep: cfg.ListenBeep,
		listenBy:  string(cfg.ListenBy),
		eventList: parseEventList(cfg.Events), accounts: deps.Accounts, log: deps.Log,
		idleAfter: idleAfter, tableLag: tableLag, refreshPause: refreshPause,
	}, nil
}

// maxResponseBytes is the largest response of the switch in bytes, enough for some 30,000 channels.
const maxResponseBytes = 48 << 20

// Subscription implements feed.Platform.
func (p *platform) Subscription() []string {
	words := p.eventList.words()
	if p.eventList.isAll() {
		return words
	}
	return append([]string{apiEvent}, words...)
}

// Connect implements feed.Platform.
func (p *platform) Connect(ctx context.Context) (feed.Session, error) {
	conn, err := p.client.Dial(ctx)
	if err != nil {
		return nil, p.refusal(err)
	}

	s := newSession(p, conn)
	if err := s.subscribe(ctx); err != nil {
		conn.Close()
		return nil, err
	}

	return s, nil
}

// subscribe subscribes, and requests the queues of the agents.
func (s *session) subscribe(ctx context.Context) error {
	err := s.conn.Subscribe(ctx, "json", s.eventList.words()...)
	var refusal *esl.Refusal
	if errors.As(err, &refusal) {
		return &feed.Refusal{
			Err: fmt.Errorf("subscribing to events: %w", err),
			Advice: "remove esl-allowed-events from the user in the directory, or list in it all words that the feed subscribes to, " +
				"HEARTBEAT and SHUTDOWN among them, and behind CUSTOM each subclass: \"" +
				strings.Join(s.eventList.words(), " ") + "\"; then reloadxml",
		}
	}
	if err != nil {
		return fmt.Errorf("subscribing to events: %w", err)
	}

	if !s.eventList.isAll() {
		// By itself: a user that may not see API events still gets the others.
		err := s.conn.Subscribe(ctx, "json", apiEvent)
		if err != nil && !isRefusal(err) {
			return fmt.Errorf("subscribing to events: %w", err)
		} else if err != nil {
			s.addNote("the user may not see API events, so that changes of tiers show only at the next connect: " +
				"add API to esl-allowed-events in the directory")
		}
	}

	return s.accountCache.askForAgents(func() error { return s.refreshAgents(ctx) })
}

// refusal adds the advice to an error that only a change of settings can resolve.
func (p *platform) refusal(err error) error {
	var certificate *tls.CertificateVerificationError
	var notTLS tls.RecordHeaderError
	advice := ""
	switch {
	case errors.Is(err, esl.ErrLoginDenied) && p.user != "":
		advice = "set user to user@domain and password to the user's esl-password in the directory " +
			"(<param name=\"esl-password\" value=\"…\"/>), then reloadxml on the switch"
	case errors.Is(err, esl.ErrLoginDenied):
		advice = "set password to that of event_socket.conf.xml (<param name=\"password\" value=\"…\"/>); " +
			"after a change there: reload mod_event_socket"
	case errors.Is(err, esl.ErrRejected):
		advice = "add this machine's address to the list of acl.conf.xml that apply-inbound-acl in event_socket.conf.xml names " +
			"(<node type=\"allow\" cidr=\"ADDRESS/32\"/>), then reloadacl; without apply-inbound-acl the switch admits loopback.auto alone"
	case errors.As(err, &certificate):
		advice = "set tls.ca_file to the authority of the certificate of the TLS proxy before the event socket, " +
			"and address to a name that the certificate has"
	case errors.As(err, &notTLS):
		advice = "set tls.enabled to false: the event socket itself has no TLS, only a proxy such as stunnel before it has"
	case errors.Is(err, esl.ErrMalformed):
		advice = "set address to listen-ip and listen-port of event_socket.conf.xml (8021): what answers there is no event socket; " +
			"tls.enabled is needed where a TLS proxy is before it"
	default:
		return err
	}

	return &feed.Refusal{Err: err, Advice: advice}
}

// isRefusal reports whether the switch responded with -ERR or -USAGE.
func isRefusal(err error) bool {
	var refusal *esl.Refusal
	return errors.As(err, &refusal)
}
