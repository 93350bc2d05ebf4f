package snapshot

import (
	"net/url"
	"strings"

	"trunkline/internal/jsonscan"
)

// said is what one message says: of at most one agent, and at most one call.
type update struct {
	agent agentUpdate
	call  callUpdate
}

// aboutAgent is what a message says of an agent; "" is nothing.
type agentUpdate struct {
	id            string
	state, status string
	loggedOut     bool // has logged out
	keepsLogout   bool // says nothing about being at work: who has logged out stays so
}

// aboutCall is what a message says of a call; "" is nothing.
type callUpdate struct {
	id, queue, agent string
	state            CallState
	reopens          bool   // also when it has ended before
	ended            bool   // has ended,
	endedBy          string // for this agent only; "": for everybody
}

// step moves the call.
func (c *callUpdate) apply(s transition) { c.state, c.reopens, c.ended = s.state, s.reopens, s.ended }

// read returns what the message says. It is nothing when its data is malformed.
func read(m *Message) update {
	s := readData(m)
	if len(m.Queue) <= maxText {
		s.call.queue = m.Queue
	}
	return s
}

func readData(m *Message) update {
	switch {
	case m.Format == "freeswitch.callcenter", m.Format == "freeswitch.event":
		return readFreeSWITCH(m.Data)
	case strings.HasPrefix(m.Format, "kazoo."):
		return readKazoo(m.Data)
	case m.Format == "svc.cc", m.Format == "generic":
		return readOwn(m)
	}
	return update{}
}

// maxText bounds what is kept of a message: longer ids and words are none.
const maxText = 256

func text(v jsonscan.Value) string {
	if len(v) > maxText {
		return ""
	}
	t, _ := v.Text()
	return string(t)
}

// decoded is text of a FreeSWITCH value, which may be URL-encoded.
func decoded(v jsonscan.Value) string {
	s := text(v)
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	if plain, err := url.PathUnescape(s); err == nil {
		return strings.ToValidUTF8(plain, "\uFFFD")
	}
	return s
}

// within reads the members in keys of a nested object; where v is no object
// there are none.
func within(v jsonscan.Value, keys jsonscan.Keys, into []jsonscan.Value) {
	if v.Kind() == jsonscan.Object {
		_ = keys.Scan(v, into) // v is part of a checked object
	}
}

// bothSpellings is Dash-Case and snake_case of the same keys.
func bothSpellings(names ...string) jsonscan.Keys {
	keys := jsonscan.KeysOf(names...)
	for i, name := range names {
		keys[strings.ToLower(strings.ReplaceAll(name, "-", "_"))] = i
	}
	return keys
}
