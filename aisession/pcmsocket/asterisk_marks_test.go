package pcmsocket

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"trunkline/aisession/streamed"
)

// markedCall is a call by Asterisk, whose answers the test gives.
type markedCall struct {
	*call
	t        *testing.T
	commands chan string
	played   []string
}

func newMarkedCall(t *testing.T, inJSON bool) *markedCall {
	c := &markedCall{t: t, commands: make(chan string, 100)}
	pending := streamed.NewCallSession(func() {})
	c.call = &call{CallSession: pending, asterisk: &asteriskQueue{json: inJSON}}
	c.sender = streamed.NewSender(func(frame []byte) error {
		c.commands <- string(frame[1:])
		return nil
	}, func() {})
	t.Cleanup(c.sender.Close)
	return c
}

// mark waits for the audio so far, and returns the id by which Asterisk was told.
func (c *markedCall) mark(name string) (id string) {
	c.t.Helper()
	c.AfterPlayed(func() { c.played = append(c.played, name) })

	sent := <-c.commands
	var m struct {
		Command string
		ID      string `json:"correlation_id"`
	}
	if c.asterisk.json {
		if err := json.Unmarshal([]byte(sent), &m); err != nil {
			c.t.Fatal(err)
		}
	} else {
		m.Command, m.ID, _ = strings.Cut(sent, " ")
	}
	if m.Command != commandMark || m.ID == "" {
		c.t.Fatalf("sent %q", sent)
	}

	return m.ID
}

func (c *markedCall) report(id string) {
	if c.asterisk.json {
		c.handleAsteriskEvent(fmt.Appendf(nil, `{"event":"MEDIA_MARK_PROCESSED","channel_id":"1.2","correlation_id":%q}`, id))
		return
	}
	c.handleAsteriskEvent([]byte(strings.TrimSpace("MEDIA_MARK_PROCESSED " + id)))
}

func (c *markedCall) expect(when string, names ...string) {
	c.t.Helper()
	if !slices.Equal(c.played, names) {
		c.t.Errorf("%s: %q are played, want %q", when, c.played, names)
	}
}

// TestMarksAreThoseThatAsteriskNames: a report may cross our FLUSH_MEDIA, be lost, or come twice.
func TestMarksAreThoseThatAsteriskNames(t *testing.T) {
	for _, inJSON := range []bool{false, true} {
		t.Run(fmt.Sprintf("json %v", inJSON), func(t *testing.T) {
			c := newMarkedCall(t, inJSON)
			a := c.mark("a")
			c.DropQueued()
			<-c.commands
			c.expect("flushed", "a")

			b := c.mark("b")
			c.report(a)
			c.expect("reported just before it was flushed", "a")

			c.report("")
			c.report("another")
			c.expect("reported of nobody's mark", "a")
			c.report(b)
			c.expect("reported", "a", "b")

			_, d := c.mark("c"), c.mark("d")
			e := c.mark("e")
			c.report(b)
			c.expect("reported twice", "a", "b")
			c.report(d)
			c.expect("the one before was lost", "a", "b", "c", "d")
			c.report(e)
			c.report(e)
			c.expect("all reported", "a", "b", "c", "d", "e")
		})
	}
}
