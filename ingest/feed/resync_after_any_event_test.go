package feed

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/format"
	"trunkline/format/registry"
)

// toldPlatform answers as the platform of a story would after each of its events: from what
// the events say alone, without any rule of the state.
type toldPlatform struct {
	agents map[string]*Object
	visits map[string]Object // calls in queues
	legs   map[string]Object
}

// happen changes the platform's objects as the event says.
func (p *toldPlatform) happen(f *event.Facts) {
	if strings.HasPrefix(string(f.Name), "agent.") && f.Name != event.NameAgentNoAnswer {
		p.agentHappens(f)
	}

	visit, inQueue := p.visits[f.CallID]
	visit.Facts.AgentID = f.AgentID
	switch f.Name {
	case event.NameQueueCallEntered:
		p.visits[f.CallID] = Object{Kind: state.Call, ID: f.CallID,
			Facts: event.Facts{CallID: f.CallID, QueueID: f.QueueID, State: event.Waiting,
				InteractionID: f.InteractionID}}
	case event.NameQueueCallOffered:
		visit.Facts.State = event.Ringing
		p.visits[f.CallID] = visit
	case event.NameQueueCallAnswered:
		visit = Object{Kind: state.Call, ID: f.CallID,
			Facts: event.Facts{CallID: f.CallID, QueueID: f.QueueID, State: event.Talking, AgentID: f.AgentID,
				InteractionID: f.InteractionID}}
		p.visits[f.CallID] = visit
		p.connectCall(f, true)
	case event.NameAgentNoAnswer:
		if o := p.agents[f.AgentID]; o != nil && o.Facts.State == event.Ringing {
			o.Facts.State = event.Available
		}
		if inQueue {
			visit.Facts.State, visit.Facts.AgentID = event.Waiting, ""
			p.visits[f.CallID] = visit
		}
	case event.NameQueueCallAbandoned, event.NameQueueCallEnded:
		delete(p.visits, f.CallID)
		p.connectCall(f, false)
	case event.NameCallCreated:
		p.legs[f.CallID] = Object{Kind: state.Call, ID: f.CallID, Leg: true,
			Facts: event.Facts{CallID: f.CallID, State: event.Ringing, InteractionID: f.InteractionID}}
	case event.NameCallAnswered, event.NameCallBridged, event.NameCallResumed, event.NameCallHeld:
		if leg, ok := p.legs[f.CallID]; ok {
			leg.Facts.State = event.Talking
			if f.Name == event.NameCallHeld {
				leg.Facts.State = event.Held
			}
			p.legs[f.CallID] = leg
		}
	case event.NameCallEnded:
		delete(p.legs, f.CallID)
		delete(p.visits, f.CallID)
	case event.NameOther:
		if f.State == event.Talking && inQueue && f.CallID != "" {
			delete(p.visits, f.CallID)
			if leg, ok := p.legs[f.CallID]; ok {
				leg.Facts.State = event.Talking
				p.legs[f.CallID] = leg
			}
		}
	}
}

// connectCall sets what a queue of Asterisk knows of a member before the member has an event.
func (p *toldPlatform) connectCall(f *event.Facts, inCall bool) {
	o := p.agents[f.AgentID]
	if o == nil {
		return
	}

	for i, m := range o.Members {
		if m.Queue == f.QueueID {
			report := *m.Report
			report.InCall = inCall
			if inCall && report.Device != event.DeviceUnknown {
				report.Device = event.DeviceInUse
			}
			o.Members[i].Report = &report
		}
	}
}

// agentHappens changes the agent of an event about one.
func (p *toldPlatform) agentHappens(f *event.Facts) {
	o := p.agents[f.AgentID]
	if o == nil {
		o = &Object{Kind: state.Agent, ID: f.AgentID, Facts: event.Facts{AgentID: f.AgentID}}
		p.agents[f.AgentID] = o
	}

	switch report := f.Agent; {
	case report == nil:
		o.Facts.State = f.State
		if visit, ok := p.visits[f.CallID]; ok && f.State == event.Ringing {
			visit.Facts.State, visit.Facts.AgentID = event.Ringing, f.AgentID
			p.visits[f.CallID] = visit
		}

	case report.Device != "":
		o.Members = slices.DeleteFunc(o.Members, func(m Member) bool { return m.Queue == f.QueueID })
		o.Members = append(o.Members, Member{Queue: f.QueueID, Report: report})
		o.Queues = []string{f.QueueID}

		for id, visit := range p.visits { // nobody talks on an idle phone
			if visit.Facts.AgentID == f.AgentID && report.Device == event.DeviceIdle &&
				visit.Facts.State == event.Talking {
				visit.Facts.AgentID = ""
				p.visits[id] = visit
			}
		}

	default:
		both := event.AgentReport{}
		if o.Facts.Agent != nil {
			both = *o.Facts.Agent
		}
		if report.Presence != "" {
			both.Presence = report.Presence
		}
		if report.Activity != "" {
			both.Activity = report.Activity
		}

		o.Facts.Agent = &both
	}
}

// objects returns the platform's snapshot.
func (p *toldPlatform) objects() (all []Object) {
	for _, id := range slices.Sorted(maps.Keys(p.visits)) {
		o := p.visits[id]
		_, o.Leg = p.legs[id]
		all = append(all, o)
	}

	for _, id := range slices.Sorted(maps.Keys(p.legs)) {
		if _, inQueue := p.visits[id]; !inQueue {
			o := p.legs[id]
			o.NoQueue = true
			all = append(all, o)
		}
	}

	for _, id := range slices.Sorted(maps.Keys(p.agents)) {
		o := *p.agents[id]
		o.Members = slices.Clone(o.Members)
		all = append(all, o)
	}

	return all
}

func TestAResyncAfterAnyEventOfAStoryChangesNothing(t *testing.T) {
	files, err := filepath.Glob("../../stats/testdata/stories/*")
	if err != nil || len(files) < 9 {
		t.Fatalf("%d stories, %v", len(files), err)
	}

	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			story := factsOfStory(t, file)
			for last := range story {
				if last+1 < len(story) && story[last+1].TimestampMS == story[last].TimestampMS {
					continue // its objects have changed recently
				}

				with := &comparedState{Partition: state.NewPartition()}
				without := &comparedState{Partition: state.NewPartition()}
				platform := &toldPlatform{agents: map[string]*Object{}, visits: map[string]Object{},
					legs: map[string]Object{}}

				for i, f := range story {
					with.happen(f)
					without.happen(f)
					platform.happen(&f)

					if i != last {
						continue
					}
					if found := with.resynced(t, platform.objects()...); with.shows() != without.shows() {
						t.Fatalf("after event %d, %s, a comparison finds %v:\nwith it    %s\nwithout it %s", i, f.Name,
							found, with.shows(), without.shows())
					}
				}

				if with.shows() != without.shows() {
					t.Fatalf("a comparison after event %d changes the end:\nwith it    %s\nwithout it %s", last,
						with.shows(), without.shows())
				}
			}

			if len(story) < 3 {
				t.Error("no story")
			}
		})
	}
}

// factsOfStory returns the facts of a story's events.
func factsOfStory(t *testing.T, file string) (story []event.Facts) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}

	var records []json.RawMessage
	if strings.HasSuffix(file, ".gz") {
		r, err := gzip.NewReader(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}

		text, err = io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}

		for line := range bytes.Lines(text) {
			records = append(records, line)
		}
	} else if err := json.Unmarshal(text, &records); err != nil {
		t.Fatal(err)
	}

	var scratch registry.Scratch
	for i, record := range records {
		f, _, err := registry.Recognise(event.TopicRaw, record, &scratch)
		if err != nil {
			t.Fatal(err)
		}

		var fields format.Fields
		e, err := f.ReadEvent(record, &fields)
		if err != nil {
			t.Fatal(fmt.Errorf("record %d: %w", i, err))
		}

		story = append(story, e.Facts)
	}

	return story
}
