package callcenter

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"trunkline/event"
)

// Event is one event as its source sends it.
type Event struct {
	Format string // ingest format
	JSON   []byte // one object
}

// state is an agent's state.
type state string

const (
	loggedOut state = "logged-out"
	idle      state = "idle"
	ringing   state = "ringing"
	onCall    state = "on-call"
	wrapUp    state = "wrap-up"
	onBreak   state = "break"
)

type agent struct {
	first, last, ext string
	queue            *queue
	state            state
	call             *call // while ringing or on a call
	handled          int   // calls, since the last login
}

func (a *agent) email() string {
	return fmt.Sprintf("%s.%s@example.com", lower(a.first), lower(a.last))
}

type queue struct {
	id      string
	dialect dialect
	waiting []*call
}

type call struct {
	id, bridgeID, conferenceID, customerLegID string
	callerName, callerNumber                  string
	queue                                     *queue
	memberNumber                              int
	joinedAt, offeredAt, answeredAt           time.Time
	history                                   []historyEntry
}

// historyEntry is one entry of a call's history.
type historyEntry struct {
	Type      string `json:"type"`
	Ext       string `json:"ext"`
	Event     string `json:"event"`
	Email     string `json:"email"`
	FirstName string `json:"first_name"`
	LastName  string `json:"last_name"`
}

// Center is one contact center. It is not safe for concurrent use.
type Center struct {
	account  string
	random   *rand.Rand
	queues   []*queue
	agents   []*agent
	sequence int     // of FreeSWITCH's events
	members  int     // counts conference members
	pending  []Event // events not returned yet
	now      time.Time
}

// New returns a contact center of the account, with all agents logged out.
func New(account string, seed uint64) *Center {
	support, sales := &queue{id: "support", dialect: svcFormat{}}, &queue{id: "sales", dialect: freeswitch{}}
	c := &Center{account: account, random: rand.New(rand.NewPCG(seed, 1)), queues: []*queue{support, sales}}
	for _, a := range []agent{
		{first: "Ada", last: "Brandt", ext: "2001", queue: support},
		{first: "Ben", last: "Castillo", ext: "2002", queue: support},
		{first: "Chloe", last: "Dubois", ext: "2003", queue: support},
		{first: "Dev", last: "Eapen", ext: "2004", queue: sales},
		{first: "Elif", last: "Fischer", ext: "2005", queue: sales},
	} {
		a.state = loggedOut
		c.agents = append(c.agents, &a)
	}

	return c
}

// Next returns the next event at the time now. The sequence of events depends on the seed only;
// now appears only in timestamps.
func (c *Center) Next(now time.Time) Event {
	c.now = now
	for len(c.pending) == 0 {
		c.applyRandomEvent()
	}
	e := c.pending[0]
	c.pending = c.pending[1:]
	return e
}

// emit appends an event. data must be encodable as JSON.
func (c *Center) emit(format string, data any) {
	text, err := json.Marshal(data)
	if err != nil {
		return // does not happen: data has only strings, numbers, lists and maps
	}
	c.pending = append(c.pending, Event{format, text})
}

// emitGeneric appends an event of format generic.
func (c *Center) emitGeneric(t event.Type, data object) {
	c.emit("generic", object{"type": t, "account_id": c.account, "timestamp": c.now.Unix(), "data": data})
}

// uuid returns a version 4 UUID from the seed.
func (c *Center) uuid() string {
	hi, lo := c.random.Uint64(), c.random.Uint64()
	hi = hi&^0xf000 | 0x4000
	lo = lo&^(3<<62) | 2<<62
	return fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", hi>>32, hi>>16&0xffff, hi&0xffff, lo>>48, lo&0xffffffffffff)
}

func lower(s string) string { return string(s[0]|0x20) + s[1:] }
