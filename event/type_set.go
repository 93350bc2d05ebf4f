package event

// TypeSet is a set of types and of the classes of Trunkline's own events, which are
// sent only to logins that name their type.
type TypeSet uint32

// The classes of Trunkline's own events.
const (
	Own            TypeSet = 1 << 31 // format "trunkline.event", type AGENT_CUSTOM_EVENT
	OwnPerformance TypeSet = 1 << 30 // format "trunkline.performance", type AGENT_PERFORMANCE
	OwnTranscript  TypeSet = 1 << 29 // as Own, of what was said in a call: content, which not every role sees
)

// EveryType is the set of a login without event_types: every type of Types, without
// Trunkline's own events.
const EveryType TypeSet = 1<<len(knownTypes) - 1

// TypeSetOf returns the set of a login with these event_types; no names mean EveryType. If
// a name is unknown, ok is false and unknown is the first such name.
func TypeSetOf(names []string) (set TypeSet, unknown string, ok bool) {
	if len(names) == 0 {
		return EveryType, "", true
	}

	for _, name := range names {
		i, known := typeIndex[Type(name)]
		if !known {
			return 0, name, false
		}

		set |= 1 << i
		switch Type(name) {
		case Custom:
			set |= Own | OwnTranscript
		case AgentPerformance:
			set |= OwnPerformance
		}
	}

	return set, "", true
}

// TypeClassOf returns the class of a message, from its headers alone: the set of one type, or one of the classes of
// Trunkline's own events. Subscribers whose TypeSet contains it receive the message. An unknown type has none.
func TypeClassOf(t Type, originalFormat string, name Name) TypeSet {
	switch originalFormat {
	case FormatOwn:
		if name == NameCallTranscript {
			return OwnTranscript
		}
		return Own
	case FormatPerformance:
		return OwnPerformance
	}

	i, ok := typeIndex[t]
	if !ok {
		return 0
	}

	return 1 << i
}
