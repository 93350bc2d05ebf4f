package stats

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"

	"trunkline/event"
	"trunkline/event/state"
)

// alert is one alert of one rule for one queue, agent or feed: the value of a record with the
// kind alert. It begins as soon as the condition holds, shows when that has lasted long enough,
// and is kept for Rules.Late after its end, so that readers see it.
type alert struct {
	header

	Name      string    `json:"name"`
	When      AlertWhen `json:"when"`
	Queue     string    `json:"queue_id,omitempty"`
	Agent     string    `json:"agent_id,omitempty"`
	Feed      string    `json:"feed,omitempty"`
	Since     event.ID  `json:"since"`                // the condition holds
	StartedMS int64     `json:"started_ms,omitempty"` // Unix milliseconds; 0: the condition has not held long enough
	EndedMS   int64     `json:"ended_ms,omitempty"`
	Value     float64   `json:"value"` // when it began, and then when it ended
}

// feed is the state of a platform's feed, as its last event tells: the value of a record with
// the kind feed.
type feed struct {
	header

	Connected bool     `json:"connected"`
	Seen      event.ID `json:"seen"`
}

// feedAge is how long a feed of which nothing is told any more is kept: it was taken out of
// the settings.
const feedAge = 24 * time.Hour

// foldFeed updates the state of the feed that an event is about.
func foldFeed(t *entryTable, e *state.Event) {
	name := e.Facts.Reason
	if name == "" || len(name) > maxTextBytes {
		return
	}

	k := newKey(kindFeed, e.Account, name, 0)
	known, ok := t.entries[k].(*feed)
	if !ok {
		known = &feed{header: header{key: k}, Seen: e.ID}
		t.add(known)
	}

	known.Connected, known.Seen = e.Facts.Name == event.NameFeedConnected, e.ID
	t.recordChange(known)
}

// AlertMessage is the event of the begin or the end of an alert, to produce.
type AlertMessage struct {
	Account  string
	At       time.Time
	Data     []byte
	Identity event.Identity
}

// newAlertID returns the id of the alert that begins at since, and nowhere else.
func newAlertID(w *alertWatch, rule *AlertRule, since event.ID, partition int) string {
	// The partition too: since may be a time, and an account may have events in two partitions, of which each
	// has an alert of its own.
	text, err := json.Marshal([]any{w.key.String(), rule.Name, rule.When.Metric, since, partition})
	if err != nil {
		panic(err) // marshalling texts and numbers cannot fail
	}
	sum := sha256.Sum256(text)
	return "alert_" + hex.EncodeToString(sum[:12])
}

// AlertView is the JSON of an alert, in events and in lists. Times are Unix seconds.
type AlertView struct {
	ID         string      `json:"alert_id"`
	Name       string      `json:"name"`
	Metric     Metric      `json:"metric"`
	Above      *float64    `json:"above,omitempty"`
	Below      *float64    `json:"below,omitempty"`
	ForSeconds int64       `json:"for_seconds"`
	AgentState event.State `json:"agent_state,omitempty"`
	QueueID    string      `json:"queue_id,omitempty"`
	AgentID    string      `json:"agent_id,omitempty"`
	Feed       string      `json:"feed,omitempty"`
	Value      float64     `json:"value"`
	StartedAt  json.Number `json:"started_at"`
	EndedAt    json.Number `json:"ended_at,omitempty"`
}

func (a *alert) view() AlertView {
	v := AlertView{ID: a.key.id.Value(), Name: a.Name, Metric: a.When.Metric, Above: a.When.Above, Below: a.When.Below,
		ForSeconds: a.When.ForSeconds, AgentState: a.When.State, QueueID: a.Queue, AgentID: a.Agent, Feed: a.Feed,
		Value: a.Value, StartedAt: secondsOf(a.StartedMS)}
	if a.EndedMS != 0 {
		v.EndedAt = secondsOf(a.EndedMS)
	}
	return v
}

// secondsOf writes Unix milliseconds as seconds with a fraction.
func secondsOf(ms int64) json.Number {
	return json.Number(strconv.FormatFloat(float64(ms)/1000, 'f', -1, 64))
}

// message returns the message of the alert's begin or end.
func (a *alert) message(name event.Name, atMS int64, number uint64) AlertMessage {
	data := struct {
		Event     event.Name  `json:"event"`
		AccountID string      `json:"account_id"`
		Timestamp json.Number `json:"timestamp"`
		AlertView
	}{name, a.key.account.Value(), secondsOf(atMS), a.view()}
	value, err := json.Marshal(data)
	if err != nil {
		panic(err) // marshalling texts and numbers cannot fail
	}

	return AlertMessage{Account: data.AccountID, At: time.UnixMilli(atMS), Data: value,
		Identity: event.Identity{Run: a.key.id.Value(), Number: number}}
}
