package freeswitch

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
)

// capturedEvent is one event, decoded; "_body" is its body.
type capturedEvent map[string]string

// plain writes it as text/event-plain.
func (e capturedEvent) plain() string {
	var inner strings.Builder
	for name, value := range e {
		if name != "_body" && name != "Content-Length" {
			fmt.Fprintf(&inner, "%s: %s\n", name, strings.ReplaceAll(url.QueryEscape(value), "+", "%20"))
		}
	}

	if body := e["_body"]; body != "" {
		fmt.Fprintf(&inner, "Content-Length: %d\n\n%s", len(body), body)
	} else {
		inner.WriteString("\n")
	}

	return fmt.Sprintf("Content-Length: %d\nContent-Type: text/event-plain\n\n%s", inner.Len(), inner.String())
}

// capturedCall is a captured session, and the ids that it had then.
type capturedCall struct {
	events           []capturedEvent
	job, owner, call string
}

var (
	ownerIDPattern = regexp.MustCompile(`origination_uuid=([^,;}]+)`)
	callIDPattern  = regexp.MustCompile(`origination_call_id=([^,;}]+)`)
	anyUUID        = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
)

func loadCapturedCall(t testing.TB, name string) capturedCall {
	t.Helper()
	f, err := os.Open("testdata/" + name + ".jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()

	var s capturedCall
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)

	for lines.Scan() {
		var object map[string]any
		if err := json.Unmarshal(lines.Bytes(), &object); err != nil {
			t.Fatal(err)
		}

		e := make(capturedEvent)
		for name, value := range object {
			if list, ok := value.([]any); ok {
				value = list[0]
			}
			e[name] = fmt.Sprint(value)
		}

		if e["Event-Name"] == "BACKGROUND_JOB" {
			s.job = e["Job-UUID"]
			if m := ownerIDPattern.FindStringSubmatch(e["Job-Command-Arg"]); m != nil {
				s.owner = m[1] // captured before the driver's legs were tagged
			}
			s.call = callIDPattern.FindStringSubmatch(e["Job-Command-Arg"])[1]
		}

		s.events = append(s.events, e)
	}

	if s.job == "" {
		t.Fatalf("%s has no BACKGROUND_JOB", name)
	}

	return s
}

// withOrder is the session as it would have gone with the new variables.
func (s capturedCall) withOrder(t *testing.T, job string, owner, destination map[string]string) []capturedEvent {
	space := uuid.MustParse(job)
	rename := func(text string) string {
		text = strings.ReplaceAll(text, s.call, destination["origination_call_id"])
		return anyUUID.ReplaceAllStringFunc(text, func(old string) string {
			switch {
			case old == s.job || old == job:
				return job
			case strings.Contains(destination["origination_call_id"], old):
				return old
			}

			return uuid.NewSHA1(space, []byte(old)).String()
		})
	}

	var events []capturedEvent
	for _, old := range s.events {
		e := make(capturedEvent)
		for name, value := range old {
			e[name] = rename(value)
		}

		if name := e["Event-Name"]; strings.HasPrefix(name, "CHANNEL_") && name != "CHANNEL_OUTGOING" {
			ordered := destination["presence_data"]
			side, _, captured := readTag(e["Channel-Presence-Data"])
			if side == tagOwner || !captured && old["Unique-ID"] == s.owner {
				ordered = owner["presence_data"]
			}
			if captured && e["Channel-Presence-Data"] != ordered {
				t.Errorf("the capture's tag is %q, the order's %q", e["Channel-Presence-Data"], ordered)
			}

			e["Channel-Presence-Data"] = ordered
		}

		events = append(events, e)
	}

	return events
}

// parseVariables parses the variables within braces, and refuses text that the switch would parse in
// another way.
func parseVariables(t *testing.T, text string) map[string]string {
	values := make(map[string]string)
	for part := range strings.SplitSeq(text, ";") {
		name, value, ok := strings.Cut(part, "=")
		if !ok || name == "" || value == "" {
			t.Errorf("%q is not a variable", part)
		}

		if quoted := strings.HasPrefix(value, "'") && strings.HasSuffix(value, "'"); quoted {
			value = value[1 : len(value)-1]
		} else if strings.Contains(value, " ") {
			t.Errorf("%q splits the command", part)
		}

		if strings.ContainsAny(value, "'\"\\`${}\r\n") {
			t.Errorf("%q can end or be expanded", part)
		}
		if _, twice := values[name]; twice {
			t.Errorf("%s is set twice", name)
		}

		values[name] = value
	}

	return values
}

// movedFirst puts the events that are first before the others, each in its order.
func movedFirst(events []capturedEvent, first func(capturedEvent) bool) []capturedEvent {
	events = slices.Clone(events)
	slices.SortStableFunc(events, func(a, b capturedEvent) int {
		switch {
		case first(a) == first(b):
			return 0
		case first(a):
			return -1
		}

		return 1
	})

	return events
}

// shuffled moves events by up to so many places.
func shuffled(seed uint64, places int) func([]capturedEvent) []capturedEvent {
	return func(events []capturedEvent) []capturedEvent {
		random := rand.New(rand.NewPCG(seed, 7))
		type placed struct {
			at int
			e  capturedEvent
		}
		list := make([]placed, len(events))

		for i, e := range events {
			list[i] = placed{i + random.IntN(places+1), e}
		}

		slices.SortStableFunc(list, func(a, b placed) int { return a.at - b.at })
		out := make([]capturedEvent, len(list))
		for i, p := range list {
			out[i] = p.e
		}

		return out
	}
}
