package pbx

import (
	"time"

	"trunkline/event"
	"trunkline/telephony/sip"
)

// DeviceRegistered implements sip.Devices.
func (d *Driver) DeviceRegistered(b sip.Binding) { d.device(event.DeviceRegister, b, "registered") }

// DeviceUnregistered implements sip.Devices.
func (d *Driver) DeviceUnregistered(b sip.Binding, reason sip.Unregistered) {
	d.device(event.DeviceGone, b, string(reason))
}

func (d *Driver) device(kind event.Type, b sip.Binding, reason string) {
	d.outbox.event(b.AccountID+b.Extension, b.AccountID, string(kind), time.Now(), map[string]any{
		"user_id": b.UserID, "presence_id": b.Extension, "contact": b.Contact, "source": b.Source.String(),
		"transport": b.Transport, "user_agent": b.UserAgent, "reason": reason,
	})
}
