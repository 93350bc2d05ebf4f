package kazoo

import (
	"crypto/tls"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"trunkline/ingest/feed"
	"trunkline/internal/panics"
	"trunkline/telephony/crossbar"
)

const (
	queuePrefix       = "trunkline." // the feed's name follows
	maxQueuedMessages = 500_000      // on the broker's disk
	prefetch          = 2000         // messages that the broker sends before earlier ones are acknowledged
)

// defaultBindings has the exchanges and routing keys of the messages that package format/kazoo parses.
var defaultBindings = []string{
	"callevt call.CHANNEL_CREATE.*",
	"callevt call.CHANNEL_ANSWER.*",
	"callevt call.CHANNEL_BRIDGE.*",
	"callevt call.CHANNEL_HOLD.*",
	"callevt call.CHANNEL_UNHOLD.*",
	"callevt call.CHANNEL_TRANSFEROR.*",
	"callevt call.CHANNEL_DESTROY.*",
	"cdr cdr.report.*.*",
	"conference conference.event.#",
	"kapps acdc_stats.call.*.*",
	"kapps acdc_stats.status.*.*",
	"kapps acdc.queue.*.*",
	"kapps acdc.queue.position.*.*",
	"kapps acdc.queue.agent_change.*.*",
	"kapps acdc.agent.action.#",
	"callmgr acdc.member.#",
	"registrar registration.success.*.*",
}

// binding is an exchange, and a pattern of the routing keys of its messages.
type binding struct{ exchange, key string }

// platform is one Kazoo. It implements feed.Platform.
type platform struct {
	name               string
	url                string
	tls                *tls.Config
	bindings           []binding
	cdrEvents          bool          // store every CHANNEL_DESTROY as a call record
	maxQueued          int           // maxQueuedMessages, but in tests
	prefetch           int           // the constant, but in tests
	queueCheckInterval time.Duration // interval of checks of the queue's length
	accounts           feed.Accounts
	crossbar           *crossbar.Client // nil if it is not configured
	directory          Directory        // nil if there is none
	syncsAccounts      bool             // keep the directory's accounts equal to Crossbar's
	log                *slog.Logger
	panics             *panics.Recoverer
	seed               maphash.Seed // of digest

	storedDigests digestSet      // of messages that Kafka has
	originations  originationIDs // of calls

	mu     sync.Mutex
	realms map[string]string // by Kazoo's account id, from the last response of Crossbar

	syncing             sync.Mutex        // held while the accounts are requested; guards the following fields
	syncedAt            time.Time         // end of the last attempt
	reportedDifferences map[string]string // differences by account id that were logged
}

// Constructor returns the constructor of feeds of kind kazoo. Without a directory, accounts are found
// by the feed's rules and by domains only, and sync_accounts has no effect.
func Constructor(directory Directory) feed.Constructor {
	return func(cfg feed.Config, deps feed.Deps) (feed.Platform, error) { return newPlatform(cfg, deps, directory) }
}

func newPlatform(cfg feed.Config, deps feed.Deps, directory Directory) (*platform, error) {
	if deps.Accounts == nil || deps.Log == nil {
		return nil, errors.New("kazoo: no accounts or log")
	}

	tlsConfig, err := cfg.TLS.Load()
	if err != nil {
		return nil, err
	}

	p := &platform{
		name: cfg.Name, url: string(cfg.URL), tls: tlsConfig, maxQueued: maxQueuedMessages, prefetch: prefetch,
		queueCheckInterval: queueCheckInterval,
		accounts:           deps.Accounts, directory: directory, log: deps.Log, panics: deps.Panics,
		seed: maphash.MakeSeed(),
	}

	if tlsConfig != nil { // tls.enabled enables TLS with either scheme
		p.url = strings.Replace(p.url, "amqp://", "amqps://", 1)
	}

	words := cfg.Events
	if len(words) == 0 {
		words = defaultBindings
	}

	// Without the exchange cdr there are no reports: the events stand in for them.
	p.cdrEvents = true
	for _, word := range words {
		exchange, key, ok := strings.Cut(word, " ")
		key = strings.TrimSpace(key)
		if !ok || exchange == "" || key == "" {
			return nil, fmt.Errorf("events: want an exchange and a routing key such as %q, got %q", defaultBindings[0],
				word)
		}

		p.bindings = append(p.bindings, binding{exchange, key})
		p.cdrEvents = p.cdrEvents && exchange != "cdr"
	}

	if cfg.CrossbarURL != "" {
		p.crossbar = crossbar.New(cfg.CrossbarURL, string(cfg.CrossbarAPIKey), requestTimeout,
			&http.Client{Transport: &http.Transport{
				Proxy: http.ProxyFromEnvironment, TLSClientConfig: tlsConfig, MaxIdleConnsPerHost: maxParallelRequests,
			}})
	}

	p.syncsAccounts = cfg.SyncAccounts && directory != nil && p.crossbar != nil
	return p, nil
}

// Subscription implements feed.Platform.
func (p *platform) Subscription() []string {
	words := make([]string, len(p.bindings))
	for i, b := range p.bindings {
		words[i] = b.exchange + " " + b.key
	}
	return words
}

func (p *platform) queueName() string { return queuePrefix + p.name }

// resolveAccount returns the account for a Kazoo account id and the realm of a message, "" if it is unknown, and
// the names that were looked up. An id that no rule and no domain maps is that of the account with the same id.
func (p *platform) resolveAccount(id, realm string) (account string, names []string) {
	known := p.realmOf(id)
	if realm == "" {
		realm, known = known, ""
	}

	for _, name := range []string{id, realm} {
		if name != "" {
			names = append(names, name)
		}
	}

	account = p.accounts.Account(names...)
	if account == "" && p.accountExists(id) {
		account = id
	}

	// The message's realm may be another than that of its account in Crossbar.
	if account == "" && known != "" && known != realm {
		names = append(names, known)
		account = p.accounts.Account(known)
	}

	return account, names
}

// realmOf returns the realm of a Kazoo account id by the last response of Crossbar, "" if it is unknown.
func (p *platform) realmOf(id string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.realms[id]
}
