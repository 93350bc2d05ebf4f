package callcenter

// callStep is a step of a call.
type callStep string

const (
	entered     callStep = "entered"
	offered     callStep = "offered"
	answered    callStep = "answered"
	missed      callStep = "missed"
	transferred callStep = "transferred"
	ended       callStep = "ended"
	abandoned   callStep = "abandoned"
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
	emitCall(c *Center, k *call, a *agent, step callStep) // a may be nil
	emitState(c *Center, a *agent)
	emitStatus(c *Center, a *agent, change statusChange)
	emitTransfer(c *Center, from, to *agent, k *call)
}
