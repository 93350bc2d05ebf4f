package state

import (
	"slices"

	"trunkline/event"
)

// foldDevice updates the entry of the event's device.
func (p *Partition) foldDevice(e *Event) {
	f := &e.Facts
	name := deviceOf(f)
	device := p.lookup(e.Account, Device, name)
	if name == "" || len(name) > maxTextBytes || device != nil && device.EventID >= e.ID {
		return
	}

	state := event.Registered
	if f.Name == event.NameDeviceUnregistered {
		state = event.Unregistered
		if device == nil {
			return
		}
	}

	next := e.copyOrNew(Device, name, device)
	e.setState(&next, state)
	next.Contacts = nextContacts(f, device)
	replaceUnlessEmpty(&next.Reason, f.Reason)
	replaceUnlessEmpty(&next.AgentID, f.AgentID)
	replaceUnlessEmpty(&next.AgentName, f.AgentName)
	replaceUnlessEmpty(&next.Caller, f.Caller)
	replaceUnlessEmpty(&next.Callee, f.Callee)
	p.put(&next, device, e.ID)
}

// deviceOf returns the device of an event about one.
func deviceOf(f *event.Facts) string {
	if f.AgentID != "" {
		return f.AgentID
	}
	return f.Caller
}

// nextContacts returns the registrations of a device after an event. device is its entry
// before, nil: none.
func nextContacts(f *event.Facts, device *Entry) []string {
	var contacts []string
	if device != nil {
		contacts = device.Contacts
	}

	contact := emptyIfTooLong(f.Contact)
	switch {
	case f.Name == event.NameDeviceUnregistered:
		return nil
	case contact == "":
		return contacts
	case f.Name == event.NameOther: // this one is gone
		return without(contacts, contact)
	}

	at, known := slices.BinarySearch(contacts, contact)
	if known || len(contacts) == maxContacts {
		return contacts
	}

	return slices.Insert(slices.Clone(contacts), at, contact)
}

// maxContacts bounds the registrations of one device.
const maxContacts = 32
