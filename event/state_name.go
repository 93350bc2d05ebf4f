package event

// State is the state of an agent, call or device.
type State string

// The states. An agent is Offline, Available, Ringing, Talking, WrapUp, Break or
// OtherState; a call Waiting, Ringing, Talking, Held or Ended; a device
// Registered or Unregistered.
const (
	Offline    State = "offline"
	Available  State = "available"
	Ringing    State = "ringing"
	Talking    State = "talking"
	WrapUp     State = "wrap_up"
	Break      State = "break"
	OtherState State = "other"

	Waiting State = "waiting"
	Held    State = "held"
	Ended   State = "ended"

	Registered   State = "registered"
	Unregistered State = "unregistered"
)

// ReasonResync is the reason of facts that a live feed found by comparing the platform
// with the state.
const ReasonResync = "resync"

// ReasonParked is the reason of a call that is held because it is parked.
const ReasonParked = "parked"

// Activity is an agent's present activity as the platform reports it, apart from whether it is
// at work.
type Activity string

// The activities. With NotReady the agent is at work, and gets no calls.
const (
	ActivityNone     Activity = "none"
	ActivityNotReady Activity = "not_ready"
	ActivityRinging  Activity = "ringing"
	ActivityTalking  Activity = "talking"
	ActivityWrapUp   Activity = "wrap_up"
)

// Device is the state of an agent's phone.
type Device string

// The states of phones. DeviceBusy is busy without a call (do not disturb), DeviceWrapUp
// is kept busy by its platform after a call. DeviceUnknown reports nothing.
const (
	DeviceIdle        Device = "idle"
	DeviceRinging     Device = "ringing"
	DeviceInUse       Device = "in_use"
	DeviceBusy        Device = "busy"
	DeviceWrapUp      Device = "wrap_up"
	DeviceUnreachable Device = "unreachable"
	DeviceUnknown     Device = "unknown"
)
