package stats

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"trunkline/internal/entitytag"
	"trunkline/internal/fault"
	"trunkline/internal/kafka"
	"trunkline/internal/retry"
)

const (
	// alertConfigLead is the time from a change of alerts to its coming into force.
	// alertConfigAge is how much older than an event the rules used for its fold may be. A
	// version is on the log long before the first event for which it is in force, as long as
	// clocks differ by less than the remaining ten seconds.
	alertConfigLead = 15 * time.Second
	alertConfigAge  = 5 * time.Second
	// alertsWord is the second part of the keys of alerts' versions on cc.queues.
	alertsWord = "alerts"
	// inheritEvery is the time between comparisons of the account tree with the log.
	inheritEvery = 2 * time.Second
	// maxInheritance bounds the accounts between one that inherits and the one with the rules.
	maxInheritance = 64
)

// AlertConfig holds the rules of an account's alerts.
type AlertConfig struct {
	Alerts []AlertRule `json:"alerts"`
	// InheritedFrom is the account whose rules these are, InheritedDefault of DefaultAlerts; "":
	// they are the account's own.
	InheritedFrom string `json:"inherited_from,omitempty"`
}

// InheritedDefault is AlertConfig.InheritedFrom of accounts for which nobody has
// configured anything.
const InheritedDefault = "default"

// alertVersion is one version of an account's alerts: the value of a record of cc.queues.
// Its key is <account>|alerts|<version>|<token>. Without alerts the account inherits
// those of From; "": DefaultAlerts. So which account inherits from which is on the log
// too. The number has a name of its own: programs that do not know alerts skip the record.
type alertVersion struct {
	AccountID     string      `json:"account_id"`
	Version       int64       `json:"alerts_version"` // 1 is the first
	EffectiveFrom int64       `json:"effective_from"` // Unix seconds
	Alerts        []AlertRule `json:"alerts"`         // null: inherited
	From          string      `json:"inherited_from,omitempty"`

	key string
}

func (v *alertVersion) tag() string { return `"` + strconv.FormatInt(v.Version, 10) + `"` }

func isAlertKey(key string) bool {
	_, rest, _ := strings.Cut(key, "|")
	return strings.HasPrefix(rest, alertsWord+"|")
}

// applyAlerts adds a version; nil deletes it. A repeated record changes nothing. c.mu is locked.
func (c *QueueConfigs) applyAlerts(key string, value []byte) {
	account, _, _ := strings.Cut(key, "|")
	c.changes.Add(1)
	if value == nil {
		c.alerts[account] = slices.DeleteFunc(c.alerts[account], func(v *alertVersion) bool { return v.key == key })
		return
	}

	v := &alertVersion{key: key}
	if json.Unmarshal(value, v) != nil || v.AccountID != account || v.Version != c.latestAlerts(account).Version+1 {
		return
	}

	c.alerts[account] = append(c.alerts[account], v)
}

// latestAlerts returns the last version of an account's alerts, or one that inherits
// DefaultAlerts. c.mu is locked.
func (c *QueueConfigs) latestAlerts(account string) *alertVersion {
	return c.alertsVersionAt(account, math.MaxInt64)
}

// alertsVersionAt returns the version of an account in force at a time, Unix seconds. c.mu
// is locked.
func (c *QueueConfigs) alertsVersionAt(account string, at int64) *alertVersion {
	for _, v := range slices.Backward(c.alerts[account]) {
		if v.EffectiveFrom <= at {
			return v
		}
	}
	return &alertVersion{AccountID: account}
}

// resolve returns the rules that a version gives an account at a time. from is the account
// whose rules they are. c.mu is locked.
func (c *QueueConfigs) resolve(v *alertVersion, at int64) (rules []AlertRule, from string) {
	for range maxInheritance {
		if v.Alerts != nil {
			return v.Alerts, v.AccountID
		}
		if v.From == "" {
			break
		}

		v = c.alertsVersionAt(v.From, at)
	}

	return c.defaults, InheritedDefault
}

// alertsAt returns the rules in force for an account at a time, and the time before which
// and from which others are: both in Unix seconds, until is 0 if no change is known.
func (c *QueueConfigs) alertsAt(account string, at int64) (rules []AlertRule, since, until int64) {
	c.mu.Lock()
	defer c.mu.Unlock()

	v := c.alertsVersionAt(account, at)
	rules, _ = c.resolve(v, at)
	for range maxInheritance {
		for _, other := range c.alerts[v.AccountID] {
			switch {
			case other.EffectiveFrom <= at:
				since = max(since, other.EffectiveFrom)
			case until == 0 || other.EffectiveFrom < until:
				until = other.EffectiveFrom
			}
		}

		if v.Alerts != nil || v.From == "" {
			break
		}

		v = c.alertsVersionAt(v.From, at)
	}

	return rules, since, until
}

// alertChanges returns a number that rises with each version that is read.
func (c *QueueConfigs) alertChanges() int64 { return c.changes.Load() }

// FindAlerts returns the last rules of an account and their entity tag.
func (c *QueueConfigs) FindAlerts(ctx context.Context, account string) (AlertConfig, string, error) {
	if err := c.refresh(ctx); err != nil {
		return AlertConfig{}, "", err
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	v := c.latestAlerts(account)
	rules, from := c.resolve(v, math.MaxInt64)
	config := AlertConfig{Alerts: rules, InheritedFrom: from}

	if from == account {
		config.InheritedFrom = ""
	}

	return config, v.tag(), nil
}

// UpdateAlerts sets the rules of an account and returns their entity tag. They are in
// force 15 seconds later. Without rules there are no alerts; nil inherits those of the
// accounts above. ifMatch is the request's If-Match header, "" for none. It returns
// fault.KindInvalid with the invalid fields, and fault.KindPrecondition if ifMatch does
// not match.
func (c *QueueConfigs) UpdateAlerts(ctx context.Context, account string, rules []AlertRule,
	ifMatch string) (string, error) {
	if err := checkAlerts(rules); err != nil {
		return "", err
	}
	return c.addAlerts(ctx, alertVersion{AccountID: account, Alerts: rules}, func(last *alertVersion) error {
		if ifMatch != "" && !entitytag.Matches(ifMatch, last.tag()) {
			return fault.New(fault.KindPrecondition, "the alerts have changed: their ETag is %s", last.tag())
		}
		return nil
	})
}

// addAlerts writes the next version, unless check refuses the last one.
func (c *QueueConfigs) addAlerts(ctx context.Context, v alertVersion,
	check func(last *alertVersion) error) (tag string, err error) {
	has := func(account, key string) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return slices.ContainsFunc(c.alerts[account], func(v *alertVersion) bool { return v.key == key })
	}

	err = c.addVersion(ctx, v.AccountID, has, func() (kafka.Record, error) {
		last := c.latestAlerts(v.AccountID)
		if err := check(last); err != nil {
			return kafka.Record{}, err
		}

		v.Version = last.Version + 1
		// The second on top makes up for the rounding down; versions never come into force out of order.
		v.EffectiveFrom = max(time.Now().Add(alertConfigLead+time.Second).Unix(), last.EffectiveFrom)
		tag = v.tag()
		value, err := json.Marshal(&v)

		return kafka.Record{Key: fmt.Appendf(nil, "%s|%s|%d|%s", v.AccountID, alertsWord, v.Version, rand.Text()),
			Value: value}, err
	})

	return tag, err
}

// AccountTree knows which accounts are above which.
type AccountTree interface {
	// Ancestors returns every account with those above it, the nearest first.
	Ancestors() map[string][]string
}

// KeepInheritance writes to cc.queues from which account each one without alerts of its own
// inherits, until ctx ends: the tree is not on the log otherwise.
func (c *QueueConfigs) KeepInheritance(ctx context.Context, tree AccountTree, warn func(error)) error {
	for range retry.Rounds(ctx, inheritEvery) {
		err := c.inherit(ctx, tree.Ancestors())
		if err != nil && ctx.Err() == nil {
			warn(err)
		}
	}
	return nil
}

// inherit writes the versions of accounts whose place in the tree has changed.
func (c *QueueConfigs) inherit(ctx context.Context, ancestors map[string][]string) error {
	if err := c.refresh(ctx); err != nil {
		return err
	}

	for account, from := range c.movedHeirs(ancestors) {
		// Rules that the account has got meanwhile stay.
		moved := fault.Conflict("the account has alerts of its own")
		_, err := c.addAlerts(ctx, alertVersion{AccountID: account, From: from}, func(last *alertVersion) error {
			if last.Alerts != nil {
				return moved
			}
			return nil
		})
		if err != nil && err != moved {
			return fmt.Errorf("writing from whom account %s has its alerts: %w", account, err)
		}
	}

	return nil
}

// movedHeirs returns the accounts that inherit from another account than the log says, with
// that account.
func (c *QueueConfigs) movedHeirs(ancestors map[string][]string) map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()

	// Nobody has rules of its own, so nobody inherits any: most installations write nothing.
	if len(c.alerts) == 0 {
		return nil
	}

	moved := map[string]string{}
	for account, above := range ancestors {
		last, from := c.latestAlerts(account), ""
		if last.Alerts != nil {
			continue
		}

		for _, a := range above {
			if c.latestAlerts(a).Alerts != nil {
				from = a
				break
			}
		}

		if from != last.From {
			moved[account] = from
		}
	}

	return moved
}
