package stats

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/internal/entitytag"
	"trunkline/internal/fault"
	"trunkline/internal/kafka"
	"trunkline/internal/report"
)

// QueueConfig holds the thresholds of an account's queues.
type QueueConfig struct {
	Default Thresholds        `json:"default"`
	Queues  []QueueThresholds `json:"queues"`
}

// QueueThresholds holds the thresholds of one queue.
type QueueThresholds struct {
	QueueID string `json:"queue_id"`
	Thresholds
}

const (
	maxThresholdSeconds = 86_400 // seconds
	maxConfigQueues     = 5000
	// configLead is the minimum time from a change to the start of the first interval
	// for which it is in force. configAge is how much older than an event the
	// configurations used for its fold may be. A row begins at most state.MaxClockSkew after the
	// event that creates it, so the configurations in force for it are known as long
	// as clocks differ by less than the remaining minute.
	configLead = state.MaxClockSkew + 2*configAge
	configAge  = time.Minute
	// Every interval, whatever its length, begins at a multiple of intervalGrid.
	intervalGrid = 15 * time.Minute
)

// DefaultQueueConfig returns the configuration of an account without one.
func DefaultQueueConfig() QueueConfig {
	return QueueConfig{Default: DefaultThresholds(), Queues: []QueueThresholds{}}
}

// check returns fault.KindInvalid with the invalid fields.
func (c *QueueConfig) check() error {
	var faults []fault.Field
	add := func(field, code, message string) {
		faults = append(faults, fault.Field{Field: field, Code: code, Message: message})
	}
	limits := func(at string, t Thresholds) {
		for name, n := range map[string]int64{"service_level_seconds": t.ServiceLevelSeconds,
			"short_abandon_seconds": t.ShortAbandonSeconds} {
			if n < 0 || n > maxThresholdSeconds {
				add(at+name, "out_of_range", fmt.Sprintf("must be 0 to %d", maxThresholdSeconds))
			}
		}
	}

	limits("default.", c.Default)
	if len(c.Queues) > maxConfigQueues {
		return fault.InvalidField("queues", "too_many", fmt.Sprintf("must be at most %d", maxConfigQueues))
	}

	seen := map[string]bool{}
	for i, q := range c.Queues {
		at := fmt.Sprintf("queues[%d].", i)
		switch {
		case len(q.QueueID) > maxTextBytes || !report.Storable(q.QueueID):
			add(at+"queue_id", "invalid", fmt.Sprintf("must be text of at most %d bytes", maxTextBytes))
		case seen[q.QueueID]:
			add(at+"queue_id", "taken", "is in the list twice")
		}
		seen[q.QueueID] = true
		limits(at, q.Thresholds)
	}

	if len(faults) > 0 {
		slices.SortFunc(faults, func(a, b fault.Field) int { return strings.Compare(a.Field, b.Field) })
		return fault.Invalid("Invalid queue configuration", faults...)
	}

	return nil
}

// configVersion is one version of an account's configuration: the value of a record
// of cc.queues. Its key is <account>|<version>|<token>.
type configVersion struct {
	AccountID string `json:"account_id"`
	Version   int64  `json:"version"` // 1 is the first
	// Unix seconds: in force for rows of intervals that begin then or later
	EffectiveFrom int64 `json:"effective_from"`
	QueueConfig

	key    string
	queues map[string]Thresholds
}

// tag returns the version's entity tag.
func (v *configVersion) tag() string { return `"` + strconv.FormatInt(v.Version, 10) + `"` }

// matches evaluates an If-Match header; * does not match an account without a
// configuration.
func (v *configVersion) matches(ifMatch string) bool {
	if strings.TrimSpace(ifMatch) == "*" {
		return v.Version > 0
	}
	return entitytag.Matches(ifMatch, v.tag())
}

// ConfigLog reads cc.queues, which has one partition.
type ConfigLog interface {
	// ScanCompacted calls each for the records of a partition of a compacted topic, in order, from
	// offset from to its end, and returns the offset of the end. It skips damaged records. It calls
	// reset before the first record, and before each restart of the scan: if the log was compacted
	// during the scan, unread records may have moved beyond the end. A record is valid during its
	// call only.
	ScanCompacted(ctx context.Context, topic string, partition int, from int64, reset func(),
		each func(*kafka.Record)) (end int64, err error)
}

// QueueConfigs holds the configurations of the queues and of the alerts of all accounts, as recorded on cc.queues.
// Of two records with the same version of an account the first one wins. It is safe for concurrent use.
type QueueConfigs struct {
	log      ConfigLog
	producer Producer

	readAt atomic.Int64 // time of the last read to the end of the topic, Unix milliseconds

	mu       sync.Mutex                  // held while the topic is read
	next     int64                       // next offset to read
	versions map[string][]*configVersion // of thresholds, by account, in their order
	alerts   map[string][]*alertVersion  // of alerts, by account, in their order
	defaults []AlertRule                 // of accounts that inherit from nobody
	changes  atomic.Int64                // number of versions of alerts that were read
}

// NewQueueConfigs returns the configurations. producer may be nil if Update and
// PurgeAccount are not used.
func NewQueueConfigs(log ConfigLog, producer Producer) *QueueConfigs {
	return &QueueConfigs{log: log, producer: producer, versions: map[string][]*configVersion{},
		alerts: map[string][]*alertVersion{}, defaults: DefaultAlerts()}
}

// refresh reads new records of the topic.
func (c *QueueConfigs) refresh(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()

	// The time before the read: what was written during it may be missing.
	began := time.Now()
	end, err := c.log.ScanCompacted(ctx, event.TopicQueues, 0, c.next, func() {}, c.applyRecord)
	if err == nil && end < c.next { // the topic was recreated or truncated
		clear(c.versions)
		clear(c.alerts)
		end, err = c.log.ScanCompacted(ctx, event.TopicQueues, 0, 0, func() {}, c.applyRecord)
	}
	if err != nil {
		return err
	}

	c.next = end
	c.readAt.Store(began.UnixMilli())
	return nil
}

// applyRecord adds a record. A repeated record changes nothing.
func (c *QueueConfigs) applyRecord(r *kafka.Record) {
	key := string(r.Key)
	if isAlertKey(key) {
		c.applyAlerts(key, r.Value)
		return
	}

	if r.Value == nil {
		account, _, _ := strings.Cut(key, "|")
		c.versions[account] = slices.DeleteFunc(c.versions[account],
			func(v *configVersion) bool { return v.key == key })
		return
	}

	v := &configVersion{key: key, queues: map[string]Thresholds{}}
	// A version that is not the next one lost a race, or is a repeat: its writer writes it again with another number.
	if json.Unmarshal(r.Value, v) != nil || v.Version != c.latest(v.AccountID).Version+1 {
		return
	}

	for _, q := range v.Queues {
		v.queues[q.QueueID] = q.Thresholds
	}

	c.versions[v.AccountID] = append(c.versions[v.AccountID], v)
}

// latest returns the last version of an account, or DefaultQueueConfig if there is
// none.
func (c *QueueConfigs) latest(account string) *configVersion {
	versions := c.versions[account]
	if len(versions) > 0 {
		return versions[len(versions)-1]
	}
	return &configVersion{AccountID: account, QueueConfig: DefaultQueueConfig()}
}

// isCurrentFor reports whether the configurations needed to fold events up to a time have
// been read. For events ahead of this node's clock it requires a read within the last
// second. Alerts need the younger ones.
func (c *QueueConfigs) isCurrentFor(at time.Time) bool {
	read := time.UnixMilli(c.readAt.Load())
	return !read.Before(at.Add(-alertConfigAge)) || time.Since(read) < time.Second
}

// thresholdsAt returns the thresholds in force for the row of a queue whose interval
// begins at start, Unix seconds.
func (c *QueueConfigs) thresholdsAt(account, queue string, start int64) Thresholds {
	c.mu.Lock()
	defer c.mu.Unlock()

	for _, v := range slices.Backward(c.versions[account]) {
		if v.EffectiveFrom > start {
			continue
		}
		if t, ok := v.queues[queue]; ok {
			return t
		}

		return v.Default
	}

	return DefaultThresholds()
}

// Find returns an account's last configuration and its entity tag.
func (c *QueueConfigs) Find(ctx context.Context, account string) (QueueConfig, string, error) {
	if err := c.refresh(ctx); err != nil {
		return QueueConfig{}, "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	v := c.latest(account)
	return v.QueueConfig, v.tag(), nil
}

// Update sets the account's configuration for rows of intervals that begin seven to 22
// minutes later, and returns its entity tag. ifMatch is the request's If-Match header,
// "" for none. It returns fault.KindInvalid with the invalid fields, and
// fault.KindPrecondition if ifMatch does not match.
func (c *QueueConfigs) Update(ctx context.Context, account string, config QueueConfig, ifMatch string) (string, error) {
	if err := config.check(); err != nil {
		return "", err
	}
	if config.Queues == nil {
		config.Queues = []QueueThresholds{}
	}

	var tag string
	err := c.addVersion(ctx, account, c.has, func() (kafka.Record, error) {
		last := c.latest(account)
		if ifMatch != "" && !last.matches(ifMatch) {
			return kafka.Record{},
				fault.New(fault.KindPrecondition, "the configuration of queues has changed: its ETag is %s", last.tag())
		}

		// On the grid, so that it is the start of an interval, whatever stats.interval is.
		from := time.Now().Add(configLead + intervalGrid - time.Second).Truncate(intervalGrid).Unix()
		v := configVersion{AccountID: account, Version: last.Version + 1, EffectiveFrom: max(from, last.EffectiveFrom),
			QueueConfig: config}
		tag = v.tag()
		value, err := json.Marshal(&v)

		return kafka.Record{Key: fmt.Appendf(nil, "%s|%d|%s", account, v.Version, rand.Text()), Value: value}, err
	})

	return tag, err
}

// addVersion writes the record that next makes from what was read, with the mutex locked,
// and again with a new one if another process has written the same version first. has
// reports whether the version with a key was taken.
func (c *QueueConfigs) addVersion(ctx context.Context, account string, has func(account, key string) bool,
	next func() (kafka.Record, error)) error {
	const attempts = 10
	for range attempts {
		if err := c.refresh(ctx); err != nil {
			return err
		}

		c.mu.Lock()
		record, err := next()
		c.mu.Unlock()

		if err != nil {
			return err
		}

		key := string(record.Key)
		if err := c.writeRecords(ctx, record); err != nil {
			return err
		}
		if err := c.refresh(ctx); err != nil {
			return err
		}
		if has(account, key) {
			return nil
		}
		// Another process was first: the tombstone takes the version back that everybody ignores.
		if err := c.writeRecords(ctx, kafka.Record{Key: []byte(key)}); err != nil {
			return err
		}
	}

	return fault.Conflict("the configuration is changed by others at the same time, try again")
}

// has reports whether the version with this key is among those of the account: not if another with its number
// was written first.
func (c *QueueConfigs) has(account, key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.versions[account], func(v *configVersion) bool { return v.key == key })
}

func (c *QueueConfigs) writeRecords(ctx context.Context, records ...kafka.Record) error {
	for i := range records {
		records[i].Topic = event.TopicQueues
	}
	_, err := c.producer.ProduceWithOffsets(ctx, records...)
	return err
}

// PurgeAccount deletes the configurations of a deleted account and returns the number
// of its versions; 0: none is left.
func (c *QueueConfigs) PurgeAccount(ctx context.Context, account string) (n int, err error) {
	if err := c.refresh(ctx); err != nil {
		return 0, err
	}

	c.mu.Lock()
	var tombstones []kafka.Record
	for _, v := range c.versions[account] {
		tombstones = append(tombstones, kafka.Record{Key: []byte(v.key)})
	}
	for _, v := range c.alerts[account] {
		tombstones = append(tombstones, kafka.Record{Key: []byte(v.key)})
	}
	c.mu.Unlock()

	if len(tombstones) == 0 {
		return 0, nil
	}

	return len(tombstones), c.writeRecords(ctx, tombstones...)
}
