package format

import (
	"maps"

	"trunkline/internal/jsonscan"
)

// CallMembers is a set of the specified members of a call event's data.
type CallMembers uint8

// The members, in the order in which they are written.
const (
	HasAccount CallMembers = 1 << iota
	HasQueue
	HasType
	HasCDR
	HasCustomer
	HasHistory
)

// callEventMembers are the names of the members.
var callEventMembers = [...]string{"Account-ID", "Queue-ID", "Type", "CDR", "customer_info", "history"}

// CallDetails is what a record of a call event tells beside its facts.
type CallDetails struct {
	Has          CallMembers // the record has members of these names itself
	CustomerName string
	ConferenceID string
	Conference   jsonscan.Value // Conference-Channel-Vars, an object of the record; nil: none
}

// CallEventKeys returns a format's keys with the specified members of a call event. Of these
// the record itself is asked, whatever an envelope in it has.
func CallEventKeys(keys jsonscan.Keys) jsonscan.Keys {
	keys = maps.Clone(keys)
	for i, name := range callEventMembers {
		slot, read := keys[name]
		if !read {
			slot = maxFields + i
		}
		keys[name] = jsonscan.WithSecondSlot(slot, maxFields+i)
	}
	return keys
}

// callEventMembersOf returns the members that a record has, from its scan alone.
func callEventMembersOf(f *Fields) (has CallMembers) {
	for i, value := range f[maxFields:] {
		if value != nil {
			has |= 1 << i
		}
	}
	return has
}

// SetConference sets the conference of a call event, where the record tells it.
func (c *CallDetails) SetConference(id, variables jsonscan.Value) {
	c.ConferenceID = Text(id)
	if variables.Kind() == jsonscan.Object {
		c.Conference = variables
	}
}
