package dialect

import (
	"encoding/json"

	"trunkline/internal/aiprotocol"
)

// The functions of a model that are requests to the session. The operator declares them in the provider's
// session object.
const (
	functionTransfer = "transfer" // {destination}
	functionHangup   = "hangup"   // {reason?}
)

// requestOf returns the request for a function that the model calls: a transfer or a hangup, after the audio
// before it. Others, and invalid arguments, are an EventFunction, whose Refusal says why.
func requestOf(name string, arguments []byte) aiprotocol.Message {
	var a struct {
		Destination string `json:"destination"`
		Reason      string `json:"reason"`
	}
	if len(arguments) > 0 && json.Unmarshal(arguments, &a) != nil {
		return aiprotocol.Message{Event: aiprotocol.EventFunction, Refusal: "the arguments are not as described"}
	}

	switch {
	case name == functionHangup:
		return aiprotocol.Message{Event: aiprotocol.EventHangup, Hangup: aiprotocol.Hangup{Reason: a.Reason},
			AfterAudio: true}
	case name == functionTransfer && a.Destination != "":
		return aiprotocol.Message{Event: aiprotocol.EventTransfer, Destination: a.Destination, AfterAudio: true}
	case name == functionTransfer:
		return aiprotocol.Message{Event: aiprotocol.EventFunction, Refusal: "destination is missing"}
	}

	return aiprotocol.Message{Event: aiprotocol.EventFunction,
		Refusal: "there is no such function: transfer and hangup are available"}
}

// errorOutput returns the result of a function that failed.
func errorOutput(reason string) string {
	text, err := json.Marshal(map[string]string{"error": reason})
	if err != nil {
		return `{"error":"it failed"}`
	}
	return string(text)
}
