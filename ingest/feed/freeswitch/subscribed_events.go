package freeswitch

import (
	"slices"
	"strings"
)

// defaultEvents is the subscription if the setting events is empty.
var defaultEvents = []string{
	"CHANNEL_CREATE", "CHANNEL_PROGRESS", "CHANNEL_PROGRESS_MEDIA", "CHANNEL_ANSWER", "CHANNEL_BRIDGE",
	"CHANNEL_UNBRIDGE",
	"CHANNEL_HOLD", "CHANNEL_UNHOLD", "CHANNEL_HANGUP_COMPLETE", "CHANNEL_DESTROY", "DTMF", "RECORD_START",
	"RECORD_STOP",
}

// defaultSubclasses are those of the CUSTOM events in the default subscription.
var defaultSubclasses = []string{
	"callcenter::info", "conference::maintenance", "sofia::register", "sofia::unregister", "sofia::expire",
	"valet_parking::info",
}

// ownEvents has the events that the session itself needs, besides API.
var ownEvents = []string{"HEARTBEAT", "SHUTDOWN"}

const (
	allEvents    = "ALL"
	customEvents = "CUSTOM"
)

// eventList is the list of events that a session subscribes to.
type eventList struct {
	names, subclasses []string
	storedEvents      map[string]bool // those of ownEvents and API that the setting lists
}

// parseEventList parses the setting events. An item in capitals is the name of an event, any other
// item the subclass of a CUSTOM event.
func parseEventList(events []string) eventList {
	s := eventList{storedEvents: make(map[string]bool)}
	for _, word := range strings.Fields(strings.Join(events, " ")) {
		switch {
		case word == customEvents:
		case isEventName(word):
			s.names = addOnce(s.names, word)
			s.storedEvents[word] = true
		default:
			s.subclasses = addOnce(s.subclasses, word)
		}
	}

	if len(s.names)+len(s.subclasses) == 0 {
		s.names, s.subclasses = slices.Clone(defaultEvents), slices.Clone(defaultSubclasses)
	}

	if s.isAll() {
		for _, word := range append(ownEvents, apiEvent) {
			s.storedEvents[word] = true
		}

		s.names = []string{allEvents}
		if len(s.subclasses) == 0 { // ALL includes only the subclasses that a module has registered already
			s.subclasses = slices.Clone(defaultSubclasses)
		}

		return s
	}

	for _, word := range ownEvents {
		s.names = addOnce(s.names, word)
	}

	return s
}

func isEventName(word string) bool {
	return strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == ""
}

func addOnce(words []string, word string) []string {
	if slices.Contains(words, word) {
		return words
	}
	return append(words, word)
}

func (s *eventList) isAll() bool { return slices.Contains(s.names, allEvents) }

// words returns the words of the command. The switch interprets every word after CUSTOM as a subclass.
func (s *eventList) words() []string {
	words := slices.Clone(s.names)
	if len(s.subclasses) > 0 {
		words = append(append(words, customEvents), s.subclasses...)
	}
	return words
}
