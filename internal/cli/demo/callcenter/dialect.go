package callcenter

// moment is a step of a call.
type moment string

const (
	entered     moment = "entered"
	offered     moment = "offered"
	answered    moment = "answered"
	missed      moment = "missed"
	transferred moment = "transferred"
	ended       moment = "ended"
	abandoned   moment = "abandoned"
)

// attendance is an agent's change of status.
type attendance string

const (
	arrives attendance = "arrives"
	leaves  attendance = "leaves"
	pauses  attendance = "pauses"
	resumes attendance = "resumes"
)

// dialect formats events as one source does.
type dialect interface {
	call(c *Center, k *call, a *agent, m moment) // a may be nil
	state(c *Center, a *agent)
	status(c *Center, a *agent, what attendance)
	transferred(c *Center, from, to *agent, k *call)
}
