package pcmsocket

import (
	"encoding/json"
	"errors"
	"strings"
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

	parameters map[string]string // the fields named X-*; nil: none
}

const (
	maxParameters        = 32
	maxFieldBytes        = 256 // bytes per field
	maxFirstMessageBytes = 16 << 10
)

func parseFirstMessage(raw []byte) (firstMessage, error) {
	m := firstMessage{SampleRate: 8000}
	if len(raw) > maxFirstMessageBytes || !utf8.Valid(raw) || json.Unmarshal(raw, &m) != nil {
		return m, errors.New("the first frame must be a JSON object with callId")
	}
	if err := m.checkTexts(); err != nil {
		return m, err
	}
	if m.format().Validate() != nil {
		return m, errors.New("sampleRate must be 8000, 16000, 24000 or 48000")
	}

	m.parameters = parametersOf(raw)
	return m, nil
}

// checkVoices checks which voices the audio has: both, or another than the caller's, only for a provider that
// listens.
func (m firstMessage) checkVoices(p aiprovider.Provider) error {
	switch {
	case m.Channels < 0 || m.Channels > 2:
		return errors.New("channels must be 1 or 2")
	case m.Track != aiprotocol.NoTrack && m.Track != aiprotocol.TrackCaller && m.Track != aiprotocol.TrackCallee:
		return errors.New("track must be caller or callee")
	case !p.Listens && (m.Channels == 2 || m.Track == aiprotocol.TrackCallee):
		return errors.New("the provider answers calls: it hears the caller only")
	}
	return nil
}

// checkTexts checks the ids and numbers.
func (m firstMessage) checkTexts() error {
	for name, text := range map[string]string{
		"callId": m.CallID, "otherLegCallId": m.OtherLegCallID,
		"callerIdNumber": m.CallerIDNumber, "calleeIdNumber": m.CalleeIDNumber,
	} {
		if len(text) > maxFieldBytes || strings.ContainsFunc(text, unicode.IsControl) {
			return errors.New(name + " is too long or has control characters")
		}
	}

	if m.CallID == "" {
		return errors.New("callId is required")
	}
	if m.SessionID != "" && uuid.Validate(m.SessionID) != nil {
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
func (m firstMessage) voices() []int {
	switch {
	case m.Channels == 2:
		return []int{localcall.Caller, localcall.Callee}
	case m.Track == aiprotocol.TrackCallee:
		return []int{localcall.Callee}
	}
	return []int{localcall.Caller}
}

func (m firstMessage) format() audio.Format {
	return audio.Format{Encoding: audio.PCM16, Rate: m.SampleRate}
}

func (m firstMessage) request(p aiprovider.Provider) aisession.Request {
	if p.Listens && m.OtherLegCallID != "" { // the call that is heard: its own id is that of the audio
		m.CallID, m.OtherLegCallID = m.OtherLegCallID, ""
	}
	return aisession.Request{
		SessionID: m.SessionID, Provider: p, Listens: p.Listens, Ingress: aisession.IngressPCMSocket,
		Format: m.format(),
		Call:   aiprotocol.Call{CallID: m.CallID, OtherLegCallID: m.OtherLegCallID},
		Caller: m.CallerIDNumber, Callee: m.CalleeIDNumber, Parameters: m.parameters,
	}
}
