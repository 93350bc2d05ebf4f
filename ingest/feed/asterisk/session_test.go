package asterisk

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"trunkline/ingest/feed"
	"trunkline/telephony/ami"
)

func TestIdentityIsTheSequenceNumberOfTheRun(t *testing.T) {
	p := &pbx{t: t, end: true, events: "Event: Hangup\r\nSequenceNumber: 17\r\nUniqueid: 1.1\r\nLinkedid: 1.1\r\n\r\n" +
		"Event: Hangup\r\nSequenceNumber: -2\r\nUniqueid: 1.2\r\nLinkedid: 1.2\r\n\r\nEvent: Hangup\r\nUniqueid: 1.3\r\nLinkedid: 1.3\r\n\r\n"}
	p.start()
	events, err := readAll(t, openSession(t, newPlatform(t, p, fixed("A"), nil)))
	if !errors.Is(err, io.EOF) || len(events) != 3 {
		t.Fatalf("%d events, %v", len(events), err)
	}

	run := "pbx/2026-11-22T12:05:19"
	for i, want := range []feed.Identity{{Run: run, Number: 17}, {Run: run, Number: 1<<32 - 2}, {}} {
		if events[i].Identity != want {
			t.Errorf("event %d has %v", i, events[i].Identity)
		}
	}

	_, err = readAll(t, openSession(t, newPlatform(t, p, fixed("A"), func(c *feed.Config) { c.Redundancy = 2 })))
	var refusal *feed.Refusal
	if !errors.As(err, &refusal) || !strings.Contains(refusal.Advice, "debug = on") {
		t.Errorf("redundancy 2 without numbers: %v", err)
	}
}

func TestResyncIsRequested(t *testing.T) {
	for _, text := range []string{
		amiEvent("Reload", "Module: app_queue"), amiEvent("FullyBooted"),
		"CallerIDName: the rest of an event\r\n\r\n", // after a line break in a caller's number
	} {
		p := &pbx{t: t, events: text, end: true}
		p.start()
		events, _ := readAll(t, openSession(t, newPlatform(t, p, fixed("A"), nil)))
		if len(events) != 1 || !events[0].Resync || events[0].Value != nil {
			t.Errorf("%q: %v", text, events)
		}
	}
}

// Text after a line break in a caller's number is dropped.
func TestInjectedEventsAreNotBelieved(t *testing.T) {
	forged := "Event: Hangup\r\nPrivilege: call,all\r\nUniqueid: 9\r\nLinkedid: 9\r\n"
	for name, text := range map[string]string{
		"whole event": "Event: Newchannel\r\nChannelState: 0\r\nCallerIDNum: 1\r\n\r\n" + forged +
			"\r\nCallerIDName: x\r\nUniqueid: 1\r\nLinkedid: 1\r\n\r\n",
		"open event": "Event: Newchannel\r\nChannelState: 0\r\nCallerIDNum: 1\r\n\r\n" + forged +
			"X: y\r\nCallerIDName: x\r\nUniqueid: 1\r\nLinkedid: 1\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			p := &pbx{t: t, events: text + leg("Newstate", "2", "2") +
				amiEvent("Hangup", "Account-ID: other", "Uniqueid: 2", "Linkedid: 2"), end: true}
			p.start()
			events, _ := readAll(t, openSession(t, newPlatform(t, p, fixed("A"), nil)))
			if len(events) != 3 || !events[0].Resync || events[1].Subjects[0] != "2" ||
				strings.Contains(string(events[2].Value), "other") {
				for _, e := range events {
					t.Log(line(e))
				}
				t.Errorf("%d events", len(events))
			}
		})
	}
}

// Seen on a real one: the channels of the call are gone.
func TestAgentCompleteMayLackItsChannels(t *testing.T) {
	p := &pbx{t: t, end: true,
		events: amiEvent("AgentComplete", "Queue: q", "Interface: PJSIP/1", "MemberName: Ann", "HoldTime: 5",
			"TalkTime: 0", "Reason: caller") +
			leg("Hangup", "1", "1")}
	p.start()
	events, _ := readAll(t, openSession(t, newPlatform(t, p, fixed("A"), nil)))
	if len(events) != 2 || events[0].Resync {
		t.Errorf("%d events", len(events))
	}
}

func TestShutdownEndsTheSession(t *testing.T) {
	p := &pbx{t: t, events: leg("Hangup", "1", "1") + amiEvent("Shutdown", "Shutdown: Cleanly")}
	p.start()
	events, err := readAll(t, openSession(t, newPlatform(t, p, fixed("A"), nil)))
	if len(events) != 1 || !errors.Is(err, errShutdown) {
		t.Errorf("%d events, %v", len(events), err)
	}
}

func FuzzEvent(f *testing.F) {
	f.Add("Event: Hangup\r\nUniqueid: 1\r\nChanVariable: a=1\r\nChanVariable: b=2\r\nX: \x00\"\\\xff")
	f.Fuzz(func(t *testing.T, text string) {
		p := &ami.Message{Size: len(text)}
		for one := range strings.SplitSeq(text, "\r\n") {
			key, value, _ := strings.Cut(one, ": ")
			p.Fields = append(p.Fields,
				ami.Field{Key: strings.ToValidUTF8(key, "?"), Value: strings.ToValidUTF8(value, "?")})
		}

		var object map[string]any
		encoded := appendJSON(nil, p.Fields, time.Unix(1, 0))
		if err := json.Unmarshal(encoded, &object); err != nil {
			t.Fatalf("%s: %v", encoded, err)
		}

		keys := map[string]int{}
		for _, field := range p.Fields {
			keys[field.Key]++
		}

		for key, n := range keys {
			switch v := object[key].(type) {
			case nil:
				if key != "Account-ID" {
					t.Fatalf("%q is missing in %s", key, encoded)
				}
			case string:
				if n != 1 {
					t.Fatalf("%q is there %d times and once in %s", key, n, encoded)
				}
			case []any:
				if n != len(v) {
					t.Fatalf("%q is there %d times and %d in %s", key, n, len(v), encoded)
				}
			}
		}

		s := newSession(
			&platform{
				accountLookup: newAccountLookup(&feed.Config{UseAccountcode: true, AccountVariable: "a"}, accounts{}),
				recentEvents:  newRecentEvents(),
			}, nil)
		s.lastSuspectResync = time.Now()

		if err := s.handleMessage(p, time.Now()); err != nil {
			t.Fatal(err)
		}
	})
}
