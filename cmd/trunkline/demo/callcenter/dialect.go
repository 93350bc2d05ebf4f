package callcenter

// callProgress is a step of a call.
type callProgress string

const (
	entered     callProgress = "entered"
	offered     callProgress = "offered"
	answered    callProgress = "answered"
	missed      callProgress = "missed"
	transferred callProgress = "transferred"
	ended       callProgress = "ended"
	abandoned   callProgress = "abandoned"
)

// statusChange is an agent's change of status.
type statusChange string

const (
	arrives statusChange = "arrives"
	leaves  statusChange = "leaves"
	pauses  statusChange = "pauses"
	resumes statusChange = "resumes"
)

// dialect formats events as one kind of source does.
type dialect interface {
	emitCall(c *Center, k *call, a *agent, m callProgress) // a may be nil
	emitState(c *Center, a *agent)
	emitStatus(c *Center, a *agent, change statusChange)
	emitTransfer(c *Center, from, to *agent, k *call)
}
