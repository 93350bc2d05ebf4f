package pbx

import (
	"time"

	"trunkline/event"
	"trunkline/telephony/sip"
)

// DeviceRegistered implements sip.RegistrationListener.
func (d *Driver) DeviceRegistered(b sip.Binding) {
	d.publishDeviceEvent(event.DeviceRegister, b, "registered")
}

// DeviceUnregistered implements sip.RegistrationListener.
func (d *Driver) DeviceUnregistered(b sip.Binding, reason sip.UnregisterReason) {
	d.publishDeviceEvent(event.DeviceUnregister, b, string(reason))
}

func (d *Driver) publishDeviceEvent(kind event.Type, b sip.Binding, reason string) {
	d.outbox.putEvent(b.AccountID+b.Extension, b.AccountID, string(kind), time.Now(), map[string]any{
		"user_id": b.UserID, "presence_id": b.Extension, "contact": b.Contact, "source": b.Source.String(),
		"transport": b.Transport, "user_agent": b.UserAgent, "reason": reason,
	})
}
