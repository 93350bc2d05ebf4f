package pcmsocket

import (
	"encoding/json"
	"errors"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"trunkline/aisession"
	"trunkline/config/aiprovider"
	"trunkline/internal/aiprotocol"
	"trunkline/telephony/audio"
	"trunkline/telephony/localcall"
)

// firstMessage is the first frame. Unknown fields are ignored, because modules add their own; those named X-* become
// parameters.
type firstMessage struct {
	CallID         string `json:"callId"`
	OtherLegCallID string `json:"otherLegCallId"`
	CallerIDNumber string `json:"callerIdNumber"`
	CalleeIDNumber string `json:"calleeIdNumber"`
	SampleRate     int    `json:"sampleRate"`
	// Bidirectional means that mod_audio_fork plays binary frames, as newer versions can.
	Bidirectional bool `json:"bidirectional"`
	// Channels is 2 where the samples of caller and callee alternate, as mod_audio_fork's mode stereo sends them.
	Channels int `json:"channels"`
	// Track is the voice of a single channel, for a provider that listens.
	Track aiprotocol.Track `json:"track"`
	// SessionID is the id of the session if Trunkline has asked the platform for the call; "": a new one.
	SessionID string `json:"sessionId"`

	parameters map[string]string
}

const (
	maxParameters        = 32
	maxFieldBytes        = 256 // bytes per field
	maxFirstMessageBytes = 16 << 10
)

func parseFirstMessage(raw []byte) (firstMessage, error) {
	h := firstMessage{SampleRate: 8000}
	if len(raw) > maxFirstMessageBytes || !utf8.Valid(raw) || json.Unmarshal(raw, &h) != nil {
		return h, errors.New("the first frame must be a JSON object with callId")
	}
	if err := h.checkTexts(); err != nil {
		return h, err
	}
	if h.format().Validate() != nil {
		return h, errors.New("sampleRate must be 8000, 16000, 24000 or 48000")
	}

	h.parameters = parametersOf(raw)
	return h, nil
}

// checkVoices checks which voices the audio has: both, or another than the caller's, only for a provider that
// listens.
func (h firstMessage) checkVoices(p aiprovider.Provider) error {
	switch {
	case h.Channels < 0 || h.Channels > 2:
		return errors.New("channels must be 1 or 2")
	case h.Track != aiprotocol.NoTrack && h.Track != aiprotocol.TrackCaller && h.Track != aiprotocol.TrackCallee:
		return errors.New("track must be caller or callee")
	case !p.Listens && (h.Channels == 2 || h.Track == aiprotocol.TrackCallee):
		return errors.New("the provider answers calls: it hears the caller only")
	}
	return nil
}

// checkTexts checks the ids and numbers.
func (h firstMessage) checkTexts() error {
	for name, text := range map[string]string{
		"callId": h.CallID, "otherLegCallId": h.OtherLegCallID,
		"callerIdNumber": h.CallerIDNumber, "calleeIdNumber": h.CalleeIDNumber,
	} {
		if len(text) > maxFieldBytes || strings.ContainsFunc(text, unicode.IsControl) {
			return errors.New(name + " is too long or has control characters")
		}
	}

	if h.CallID == "" {
		return errors.New("callId is required")
	}
	if h.SessionID != "" && uuid.Validate(h.SessionID) != nil {
		return errors.New("sessionId must be a UUID")
	}

	return nil
}

// parametersOf returns the strings of an object that are named X-*.
func parametersOf(raw []byte) map[string]string {
	var members map[string]any
	if json.Unmarshal(raw, &members) != nil { // it was decoded before
		return nil
	}

	var parameters map[string]string
	for name, value := range members {
		text, isText := value.(string)
		if isText {
			parameters = addParameter(parameters, name, text)
		}
	}

	return parameters
}

// addParameter adds a value if its name is X-*. parameters may be nil.
func addParameter(parameters map[string]string, name, text string) map[string]string {
	if strings.HasPrefix(name, "X-") && len(name) <= maxFieldBytes && len(text) <= maxFieldBytes &&
		len(parameters) < maxParameters {
		if parameters == nil {
			parameters = make(map[string]string)
		}
		parameters[name] = text
	}
	return parameters
}

// voices returns the voice of each channel.
func (h firstMessage) voices() []int {
	switch {
	case h.Channels == 2:
		return []int{localcall.Caller, localcall.Callee}
	case h.Track == aiprotocol.TrackCallee:
		return []int{localcall.Callee}
	}
	return []int{localcall.Caller}
}

func (h firstMessage) format() audio.Format {
	return audio.Format{Encoding: audio.PCM16, Rate: h.SampleRate}
}

func (h firstMessage) request(p aiprovider.Provider) aisession.Request {
	if p.Listens && h.OtherLegCallID != "" { // the call that is heard: its own id is that of the audio
		h.CallID, h.OtherLegCallID = h.OtherLegCallID, ""
	}
	return aisession.Request{
		SessionID: h.SessionID, Provider: p, Listens: p.Listens, Ingress: aisession.IngressPCMSocket,
		Format: h.format(),
		Call:   aiprotocol.Call{CallID: h.CallID, OtherLegCallID: h.OtherLegCallID},
		Caller: h.CallerIDNumber, Callee: h.CalleeIDNumber, Parameters: h.parameters,
	}
}

// dtmfMessage is a digit of the caller, sent as a text frame.
type dtmfMessage struct {
	Event string `json:"event"`
	DTMF  struct {
		Digit    string  `json:"digit"`
		Duration float64 `json:"duration"` // ms
	} `json:"dtmf"`
}

const maxDTMFDuration = time.Minute

// parseDTMF parses a text frame. It returns false if the frame is not a DTMF message.
func parseDTMF(raw []byte) (digit byte, duration time.Duration, ok bool) {
	var d dtmfMessage
	if len(raw) > maxFirstMessageBytes || json.Unmarshal(raw, &d) != nil || d.Event != "dtmf" ||
		!aiprotocol.IsDigit(d.DTMF.Digit) {
		return 0, 0, false
	}
	ms := min(max(d.DTMF.Duration, 0), float64(maxDTMFDuration.Milliseconds()))
	return d.DTMF.Digit[0], time.Duration(ms) * time.Millisecond, true
}
