package stats

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unique"

	"trunkline/event"
)

// kind is the kind of an entry, the second part of its record's key.
type kind uint8

const (
	kindQueue kind = iota
	kindAgent
	kindOpenCall
	kindOpenAgent
	kindOpenInterval
	kindAlert
	kindFeed
)

var kinds = [...]string{
	kindQueue: "queue", kindAgent: "agent", kindOpenCall: "open_call", kindOpenAgent: "open_agent",
	kindOpenInterval: "open_interval",
	kindAlert:        "alert", kindFeed: "feed",
}

// hasInterval reports whether keys of the kind contain an interval.
func (k kind) hasInterval() bool { return k == kindQueue || k == kindAgent || k == kindOpenInterval }

// key identifies an entry. Its texts are interned, since all rows of a queue share
// them.
type key struct {
	account, id unique.Handle[string]
	start       int64 // for rows: Unix seconds
	kind        kind
}

func newKey(k kind, account, id string, start int64) key {
	return key{unique.Make(account), unique.Make(id), start, k}
}

// String returns the key of the entry's record on cc.stats:
// <account>|queue|<id>|<interval start>, <account>|agent|<id>|<interval start>,
// <account>|open_interval|<agent>|<interval start>, <account>|open_call|<id>,
// <account>|open_agent|<id>, <account>|alert|<id> or <account>|feed|<name>. An account has
// no "|"; an id may.
func (k key) String() string {
	text := k.account.Value() + "|" + kinds[k.kind] + "|" + k.id.Value()
	if k.kind.hasInterval() {
		text += "|" + strconv.FormatInt(k.start, 10)
	}
	return text
}

func parseKey(s string) (key, error) {
	account, rest, ok1 := strings.Cut(s, "|")
	word, id, ok2 := strings.Cut(rest, "|")
	k := slices.Index(kinds[:], word)
	if !ok1 || !ok2 || account == "" || k < 0 {
		return key{}, fmt.Errorf("%q is not a key of the figures", s)
	}

	var start int64
	if kind(k).hasInterval() {
		at := strings.LastIndexByte(id, '|')
		if at < 0 {
			return key{}, fmt.Errorf("%q has no interval", s)
		}

		var err error
		start, err = strconv.ParseInt(id[at+1:], 10, 64)
		if err != nil {
			return key{}, fmt.Errorf("%q has no interval: %w", s, err)
		}

		id = id[:at]
	}

	return newKey(kind(k), account, id, start), nil
}

func (k key) compare(o key) int {
	return cmp.Or(cmp.Compare(k.kind, o.kind), cmp.Compare(k.account.Value(), o.account.Value()),
		cmp.Compare(k.id.Value(), o.id.Value()), cmp.Compare(k.start, o.start))
}

// entry is one of *QueueRow, *AgentRow, *call, *agent, *openInterval, *alert and *feed.
type entry interface {
	commonHeader() *header
}

// header holds the fields common to all entries. They are not in the values of
// records.
type header struct {
	key        key
	due        event.ID // the id at which the entry expires or time is added to it
	timerIndex int      // index in the timers that hold it
}

func (h *header) commonHeader() *header { return h }

// QueueRow holds the figures of a queue for the calls that entered it in one interval.
// See docs/figures.md.
type QueueRow struct {
	header

	Offered             int64 `json:"offered"`
	Answered            int64 `json:"answered"`
	Abandoned           int64 `json:"abandoned"`
	AbandonedShort      int64 `json:"abandoned_short"`
	AnsweredWithin      int64 `json:"answered_within"`
	Transferred         int64 `json:"transferred"`
	ServiceLevelSeconds int64 `json:"service_level_seconds"`
	ShortAbandonSeconds int64 `json:"short_abandon_seconds"`
	WaitMS              int64 `json:"wait_ms_total"`
	WaitMSMax           int64 `json:"wait_ms_max"`
	AbandonWaitMS       int64 `json:"abandon_wait_ms_total"`
	TalkMS              int64 `json:"talk_ms_total"`
	HoldMS              int64 `json:"hold_ms_total"`
	WrapUpMS            int64 `json:"wrap_up_ms_total"`
}

// AgentRow holds the figures of an agent in one interval. See docs/figures.md.
type AgentRow struct {
	header

	LoggedInMS      int64            `json:"logged_in_ms"`
	AvailableMS     int64            `json:"available_ms"`
	TalkingMS       int64            `json:"talking_ms"`
	WrapUpMS        int64            `json:"wrap_up_ms"`
	BreakMS         int64            `json:"break_ms"`
	BreakMSByReason map[string]int64 `json:"break_ms_by_reason,omitempty"`
	Offered         int64            `json:"offered"`
	Answered        int64            `json:"answered"`
	NoAnswer        int64            `json:"no_answer"`
}

// ServiceLevel returns answered_within / (offered - abandoned_short), rounded to four
// decimal places; ok is false if the denominator is zero.
func (r *QueueRow) ServiceLevel() (level float64, ok bool) {
	return ratio(r.AnsweredWithin, r.Offered-r.AbandonedShort)
}

// ServiceLevelStrict returns answered_within / offered; rounding and ok are as for
// ServiceLevel.
func (r *QueueRow) ServiceLevelStrict() (level float64, ok bool) {
	return ratio(r.AnsweredWithin, r.Offered)
}

func ratio(part, whole int64) (float64, bool) {
	if whole <= 0 {
		return 0, false
	}
	return math.Round(float64(part)/float64(whole)*10_000) / 10_000, true
}

// call is one pass of a call through a queue: the value of a record with the kind
// open_call. It is kept for endedCallExpiry after its end, and an abandoned one as long as
// late events count, so that readers see it.
type call struct {
	header

	Queue       string `json:"queue_id"`
	Interaction string `json:"interaction_id,omitempty"`
	Caller      string `json:"caller,omitempty"`
	Agent       string `json:"agent_id,omitempty"` // the agent whose phone rang last, or who has answered
	EnteredMS   int64  `json:"entered_ms"`
	AnsweredMS  int64  `json:"answered_ms,omitempty"`
	EndedMS     int64  `json:"ended_ms,omitempty"`
	HoldStartMS int64  `json:"held_ms,omitempty"` // start of the current hold
	Abandoned   bool   `json:"abandoned,omitempty"`
	WaitedMS    int64  `json:"waited_ms,omitempty"`  // counted as the wait before it was abandoned
	Short       bool   `json:"short,omitempty"`      // that counted as a short one
	TakenBack   bool   `json:"taken_back,omitempty"` // it was told as abandoned, and was not
	Transferred bool   `json:"transferred,omitempty"`
	Seen        int64  `json:"seen"` // the last event about it, for its expiry
}

// agent is an agent's state: the value of a record with the kind open_agent. After a
// logout it is kept as long as late events count.
type agent struct {
	header

	State      event.State `json:"state,omitempty"`
	Reason     string      `json:"reason,omitempty"`       // of a break
	SinceMS    int64       `json:"since_ms"`               // start of State
	CreditedMS int64       `json:"credited_ms"`            // time in State up to here is in the rows
	CallID     string      `json:"call_id,omitempty"`      // the current call
	AfterCall  event.State `json:"after_call,omitempty"`   // as in cc.state
	StepCall   string      `json:"step_call_id,omitempty"` // the call of Step
	Step       event.Name  `json:"step,omitempty"`         // the last event of a queue's call, to count repeats once
	Queue      string      `json:"queue_id,omitempty"`     // of the last call answered from a queue, for its wrap-up
	QueueStart int64       `json:"queue_start,omitempty"`  // the interval of that call
	Queues     []string    `json:"queues,omitempty"`       // those in which it is a member, sorted
	Paused     []string    `json:"paused,omitempty"`       // those of Queues in which it is paused
	Seen       int64       `json:"seen"`                   // the last event about it, for its expiry
}

// Append appends the row's JSON object.
func (r *QueueRow) Append(dst []byte, intervalSeconds int64) []byte {
	dst = appendRowKey(dst, &r.key, `,"queue_id":`, intervalSeconds)
	dst = appendFigures(dst, []figure{
		{"offered", r.Offered}, {"answered", r.Answered}, {"abandoned", r.Abandoned},
		{"abandoned_short", r.AbandonedShort},
		{"answered_within", r.AnsweredWithin}, {"transferred", r.Transferred},
		{"service_level_seconds", r.ServiceLevelSeconds},
		{"short_abandon_seconds", r.ShortAbandonSeconds}, {"wait_ms_total", r.WaitMS}, {"wait_ms_max", r.WaitMSMax},
		{"abandon_wait_ms_total", r.AbandonWaitMS}, {"talk_ms_total", r.TalkMS}, {"hold_ms_total", r.HoldMS},
		{"wrap_up_ms_total", r.WrapUpMS},
	})

	if level, ok := r.ServiceLevel(); ok {
		dst = append(dst, `,"service_level":`...)
		dst = strconv.AppendFloat(dst, level, 'f', -1, 64)
	}
	if level, ok := r.ServiceLevelStrict(); ok {
		dst = append(dst, `,"service_level_strict":`...)
		dst = strconv.AppendFloat(dst, level, 'f', -1, 64)
	}

	return append(dst, '}')
}

// Append appends the row's JSON object.
func (r *AgentRow) Append(dst []byte, intervalSeconds int64) []byte {
	dst = appendRowKey(dst, &r.key, `,"agent_id":`, intervalSeconds)
	dst = appendFigures(dst, []figure{
		{"logged_in_ms", r.LoggedInMS}, {"available_ms", r.AvailableMS}, {"talking_ms", r.TalkingMS},
		{"wrap_up_ms", r.WrapUpMS},
		{"break_ms", r.BreakMS}, {"offered", r.Offered}, {"answered", r.Answered}, {"no_answer", r.NoAnswer},
	})

	for i, reason := range slices.Sorted(maps.Keys(r.BreakMSByReason)) {
		if i == 0 {
			dst = append(dst, `,"break_ms_by_reason":{`...)
		} else {
			dst = append(dst, ',')
		}

		dst = append(event.AppendString(dst, reason), ':')
		dst = strconv.AppendInt(dst, r.BreakMSByReason[reason], 10)
	}

	if len(r.BreakMSByReason) > 0 {
		dst = append(dst, '}')
	}

	return append(dst, '}')
}

type figure struct {
	name  string
	value int64
}

func appendRowKey(dst []byte, k *key, idMember string, intervalSeconds int64) []byte {
	dst = append(dst, `{"account_id":`...)
	dst = event.AppendString(dst, k.account.Value())
	dst = append(dst, idMember...)
	dst = event.AppendString(dst, k.id.Value())
	dst = append(dst, `,"interval_start":`...)
	dst = strconv.AppendInt(dst, k.start, 10)
	dst = append(dst, `,"interval_seconds":`...)
	return strconv.AppendInt(dst, intervalSeconds, 10)
}

func appendFigures(dst []byte, figures []figure) []byte {
	for _, f := range figures {
		dst = append(dst, `,"`...)
		dst = append(dst, f.name...)
		dst = append(dst, `":`...)
		dst = strconv.AppendInt(dst, f.value, 10)
	}
	return dst
}
