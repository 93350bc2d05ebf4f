package feed

import (
	"slices"

	"trunkline/event"
	"trunkline/event/state"
)

// compareDevice compares whether a device is registered and, where the platform names them, its registrations.
func (c *comparison) compareDevice(o Object, e *state.Entry) {
	facts := o.Facts
	facts.AgentID = o.ID
	registered := e != nil && e.State == event.Registered

	if o.Facts.State == event.Unregistered {
		if registered {
			c.addDifference(o.Account, event.NameDeviceUnregistered, facts)
		}
		return
	}

	facts.State = event.Registered
	if !registered && len(o.Contacts) == 0 {
		c.addDifference(o.Account, event.NameDeviceRegistered, facts)
	}

	var contacts []string
	if registered {
		contacts = e.Contacts
	}

	for _, contact := range o.Contacts {
		facts.Contact = contact
		if !slices.Contains(contacts, contact) {
			c.addDifference(o.Account, event.NameDeviceRegistered, facts)
		}
	}

	if o.Contacts == nil {
		return
	}

	facts.State = event.Unregistered
	for _, contact := range contacts {
		facts.Contact = contact
		if !slices.Contains(o.Contacts, contact) {
			c.addDifference(o.Account, event.NameDeviceUnregistered, facts)
		}
	}
}
