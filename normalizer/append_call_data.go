package normalizer

import (
	"bytes"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/format"
)

// appendCallData appends the data of a call event: the members of the source's own object as
// they are, and behind them those of the specification that it does not have. past has the
// steps of the call before the event, extension is Format.ExtensionOf.
func appendCallData(dst []byte, m *event.Message, call *format.CallDetails, past []state.Step,
	extension func(string) string) []byte {
	end := bytes.LastIndexByte(m.Data, '}')
	if end < 0 { // not an object
		return append(dst, m.Data...)
	}

	dst = append(dst, m.Data[:end]...)
	f := &m.Metadata.Facts
	member := func(member format.CallMembers, key string) bool {
		if call.Has&member != 0 {
			return false
		}
		dst = append(dst, key...)
		return true
	}
	text := func(key, value string) { dst = event.AppendString(append(dst, key...), value) }

	if member(format.HasAccount, `,"Account-ID":`) {
		dst = event.AppendString(dst, m.AccountID)
	}
	if member(format.HasQueue, `,"Queue-ID":`) {
		dst = event.AppendString(dst, f.QueueID)
	}
	if member(format.HasType, `,"Type":`) {
		dst = event.AppendString(dst, string(m.Type))
	}

	if member(format.HasCDR, `,"CDR":{"channel":{"Conference-Channel-Vars":`) {
		if call.Conference != nil {
			dst = append(dst, call.Conference...)
		} else {
			dst = append(dst, `{}`...)
		}

		text(`,"Custom-Channel-Vars":{"Account-ID":`, m.AccountID)
		text(`,"Bridge-ID":`, f.InteractionID)
		text(`}},"Call-ID":`, f.CallID)
		text(`,"Conference-ID":`, call.ConferenceID)
		text(`,"Event":`, string(f.Name))
		dst = append(dst, '}')
	}

	if member(format.HasCustomer, `,"customer_info":{"customer_callerid_name":`) {
		dst = event.AppendString(dst, call.CustomerName)
		text(`,"customer_callerid_number":`, f.Caller)
		text(`,"customer_uuid":`, f.CallID)
		dst = append(dst, '}')
	}

	if member(format.HasHistory, `,"history":[`) {
		dst = appendHistory(dst, past, state.StepOf(f), extension)
		dst = append(dst, ']')
	}

	return append(dst, '}')
}

// appendHistory appends the steps of a call, at most state.MaxSteps, the event's own last.
func appendHistory(dst []byte, past []state.Step, last state.Step, extension func(string) string) []byte {
	if last.RepeatsLast(past) {
		past = past[:len(past)-1]
	}

	for i := range past {
		// The step that the history of the call leaves out too, when it takes in the last one.
		if len(past) == state.MaxSteps && i == state.MaxSteps/2 {
			continue
		}
		dst = appendStep(dst, &past[i], extension)
		dst = append(dst, ',')
	}

	return appendStep(dst, &last, extension)
}

// appendStep appends a step. Of one in the queue ext is the queue.
func appendStep(dst []byte, s *state.Step, extension func(string) string) []byte {
	kind, ext := `{"type":"agent","ext":`, s.AgentID
	switch {
	case s.AgentID == "":
		kind, ext = `{"type":"queue","ext":`, s.QueueID
	case extension != nil:
		ext = extension(s.AgentID)
	}

	dst = event.AppendString(append(dst, kind...), ext)
	dst = event.AppendString(append(dst, `,"event":`...), string(s.Name))
	dst = event.AppendString(append(dst, `,"email":"","first_name":`...), s.AgentName)

	return append(dst, `,"last_name":""}`...)
}
