package pcmsocket

import (
	"errors"
	"net/url"

	"trunkline/aisession"
	"trunkline/config/aiprovider"
	"trunkline/internal/aiprotocol"
)

// callStart has what the first frame of a connection tells.
type callStart struct {
	request  aisession.Request
	voices   []int          // of the channels of the audio, as in aisession.Session.ReceiveVoice
	asterisk *asteriskQueue // nil: another client
	fork     *audioFork     // nil: another client
}

// newCallStart reads the first frame: a firstMessage, or Asterisk's MEDIA_START, whose numbers are in the query. The
// error is for the client.
func newCallStart(subprotocol string, raw []byte, query url.Values, p aiprovider.Provider) (callStart, error) {
	e, isJSON, ok := parseAsteriskEvent(raw)
	if !ok || e.Event != mediaStart {
		first, err := parseFirstMessage(raw)
		if err != nil {
			return callStart{}, err
		}

		if err := first.checkVoices(p); err != nil {
			return callStart{}, err
		}

		start := callStart{request: first.request(p), voices: first.voices()}
		if subprotocol == audioForkProtocol && !first.Bidirectional {
			start.fork = &audioFork{rate: first.SampleRate}
		}

		return start, nil
	}

	format, err := asteriskFormat(e.Format)
	if err != nil {
		return callStart{}, err
	}

	first := firstMessage{
		CallID: e.ChannelID, OtherLegCallID: query.Get("otherLegCallId"),
		CallerIDNumber: query.Get("callerIdNumber"),
		CalleeIDNumber: query.Get("calleeIdNumber"), Track: aiprotocol.Track(query.Get("track")),
		SessionID: query.Get("sessionId"),
	}
	if err := errors.Join(first.checkTexts(), first.checkVoices(p)); err != nil {
		return callStart{}, err
	}

	for name, value := range e.Variables {
		first.parameters = addParameter(first.parameters, name, value)
	}

	start := callStart{request: first.request(p), voices: first.voices(), asterisk: &asteriskQueue{json: isJSON}}
	start.request.Format = format
	return start, nil
}
