package asterisk

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/ingest/feed"
	"trunkline/telephony/ami"
)

// defaultMask is the default event mask. Variables are of class dialplan.
const defaultMask = "system,call,agent,dialplan,dtmf,cdr"

// New returns the platform of a feed of kind asterisk.
func New(cfg feed.Config, deps feed.Deps) (feed.Platform, error) {
	tlsConfig, err := cfg.TLS.Load()
	if err != nil {
		return nil, err
	}

	metrics := deps.Metrics
	if metrics == nil {
		metrics = prometheus.NewRegistry()
	}

	client, err := ami.New(ami.Config{
		Address: cfg.Address, TLS: tlsConfig, Username: cfg.Username, Secret: string(cfg.Secret), Events: "off",
	}, ami.Deps{Log: deps.Log, Metrics: metrics, Panics: deps.Panics})
	if err != nil {
		return nil, err
	}

	p := &platform{cfg: cfg, deps: deps, client: client, recentEvents: newRecentEvents()}
	p.eventMask, p.filters = parseSubscription(cfg)
	p.accountLookup = newAccountLookup(&p.cfg, deps.Accounts)

	return p, nil
}

// platform is one Asterisk. It implements feed.Platform.
type platform struct {
	cfg           feed.Config
	deps          feed.Deps
	client        *ami.Client
	eventMask     string         // classes of events, separated by commas
	filters       []string       // of events, as in eventfilter of manager.conf
	accountLookup *accountLookup // shared by successive connections, like recentEvents
	recentEvents  *recentEvents
}

// parseSubscription returns the event mask and the filters. An item of the setting events with a character
// that no class name has is a filter, with the syntax of eventfilter in manager.conf.
func parseSubscription(cfg feed.Config) (mask string, filters []string) {
	if len(cfg.Events) == 0 {
		return defaultMask, []string{defaultFilter(cfg.AccountVariable)}
	}

	var classes []string
	for _, word := range cfg.Events {
		if strings.ContainsAny(word, " :^!(") {
			filters = append(filters, word)
		} else {
			classes = append(classes, word)
		}
	}

	if len(classes) == 0 {
		classes = []string{defaultMask}
	}

	return strings.Join(classes, ","), filters
}

// defaultFilter returns the filter for the events that forwardedPrefixes and lifecycleEvents list, and for two
// variables.
func defaultFilter(variable string) string {
	variables := "QUEUESTATUS"
	if variable != "" {
		variables += "|" + regexp.QuoteMeta(variable)
	}
	names := slices.Concat(forwardedPrefixes, lifecycleEvents)
	return "^Event: ((" + strings.Join(names, "|") + ")|VarSet.*Variable: (" + variables + "))"
}

// Subscription implements feed.Platform.
func (p *platform) Subscription() []string {
	return append(strings.Split(p.eventMask, ","), p.filters...)
}

// Connect implements feed.Platform.
func (p *platform) Connect(ctx context.Context) (feed.Session, error) {
	conn, err := p.client.Dial(ctx)
	if err != nil {
		return nil, p.dialError(err)
	}
	s := newSession(p, conn)
	if err := s.subscribe(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// subscribe finds the run of the switch, and sets the filters and the mask of its events.
func (s *session) subscribe(ctx context.Context) error {
	status, err := s.conn.Do(ctx, ami.Action{Name: "CoreStatus"})
	switch {
	case denied(err):
		return &feed.Refusal{Err: fmt.Errorf("asking for the status of Asterisk: %w", err),
			Advice: fmt.Sprintf("manager.conf, [%s]: write = reporting", s.platform.cfg.Username)}
	case err != nil:
		return fmt.Errorf("asking for the status of Asterisk: %w", err)
	}

	// Asterisk numbers its events from its start: the start tells the numbers of two runs apart.
	s.switchRun = s.platform.cfg.Name + "/" + status.Get("CoreStartupDate") + "T" + status.Get("CoreStartupTime")
	// Filters first, then the mask: nothing arrives that they leave out.
	for _, filter := range s.platform.filters {
		_, err := s.conn.Do(ctx,
			ami.Action{Name: "Filter",
				Fields: []ami.Field{{Key: "Operation", Value: "Add"}, {Key: "Filter", Value: filter}}})
		switch {
		case denied(err): // without a filter the session drops the other events
			s.notes = append(s.notes,
				fmt.Sprintf("Asterisk sends events that are not needed: manager.conf, [%s]: write = system permits the feed to filter them, or: eventfilter = %s",
					s.platform.cfg.Username, filter))
		case isRefusal(err):
			return &feed.Refusal{Err: fmt.Errorf("adding a filter: %w", err),
				Advice: "events: correct the filter " + filter}
		case err != nil:
			return fmt.Errorf("adding a filter: %w", err)
		}
	}

	if err := s.checkClasses(ctx); err != nil {
		return err
	}

	answer, err := s.conn.Do(ctx,
		ami.Action{Name: "Events", Fields: []ami.Field{{Key: "EventMask", Value: s.platform.eventMask}}})
	if err == nil && strings.EqualFold(answer.Get("Events"), "Off") { // Asterisk supports none of the classes
		err = &ami.Refusal{Message: "the mask has no class of events"}
	}

	switch {
	case isRefusal(err):
		return &feed.Refusal{Err: fmt.Errorf("subscribing to %s: %w", s.platform.eventMask, err),
			Advice: "events: name classes of the manager interface, such as call, agent and cdr"}
	case err != nil:
		return fmt.Errorf("subscribing to events: %w", err)
	}

	return nil
}

// isRefusal reports whether Asterisk has answered with an error.
func isRefusal(err error) bool {
	var refusal *ami.Refusal
	return errors.As(err, &refusal)
}

// denied reports whether the user in manager.conf lacks the privilege for an action.
func denied(err error) bool {
	var refusal *ami.Refusal
	return errors.As(err, &refusal) && strings.Contains(refusal.Message, "ermission denied")
}

// unknownAction reports whether the module of an action is not loaded.
func unknownAction(err error) bool {
	var refusal *ami.Refusal
	return errors.As(err, &refusal) && strings.HasPrefix(refusal.Message, "Invalid/unknown command")
}

// dialError returns a *feed.Refusal for errors that only a change of settings can resolve.
func (p *platform) dialError(err error) error {
	var (
		authority x509.UnknownAuthorityError
		hostname  x509.HostnameError
		invalid   x509.CertificateInvalidError
		header    tls.RecordHeaderError
		unknown   *net.DNSError
	)
	advice := ""
	switch {
	case errors.Is(err, ami.ErrLoginDenied):
		advice = fmt.Sprintf(
			"manager.conf: [%s] with this secret, and permit = with the address of this node (deny and acl too); then: asterisk -rx 'manager reload'",
			p.cfg.Username)
	case errors.As(err, &authority):
		advice = "tls.ca_file: the certificate of the authority that signed tlscertfile of manager.conf"
	case errors.As(err, &hostname):
		advice = "address: a name that tlscertfile of manager.conf has"
	case errors.As(err, &invalid):
		advice = "manager.conf: tlscertfile with a certificate that is valid now"
	case errors.As(err, &header):
		advice = "address: the port of tlsbindaddr (5039), or tls.enabled: false for the port of bindaddr (5038)"
	case errors.Is(err, ami.ErrMalformed):
		advice = "address: the port of the manager interface (bindaddr and port in manager.conf, 5038; tlsbindaddr with tls.enabled: true)"
	case errors.As(err, &unknown) && unknown.IsNotFound:
		advice = "address: a host name that resolves"
	default:
		return err
	}

	return &feed.Refusal{Err: err, Advice: advice}
}
