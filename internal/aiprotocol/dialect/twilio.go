package dialect

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strconv"

	"trunkline/event"
	"trunkline/internal/aiprotocol"
)

func twilioProtocol() Protocol {
	return Protocol{
		Name: Twilio, Encodings: []string{aiprotocol.ULaw}, RequestsWithoutOptIn: true, CloseEndsCall: true,
		Listens: true, TakesSecret: true, TakesSession: true,
		Prepare: signTwilio,
		New: func(c Config) Dialect {
			return &twilioDialect{config: c, decoder: aiprotocol.Decoder{Extensions: true, Listens: c.Listens}}
		},
	}
}

// signTwilio sets the signature that Twilio's servers check: that of the address, which has no form
// parameters.
func signTwilio(c Config, address string, header http.Header) string {
	if c.Secret != "" {
		mac := hmac.New(sha1.New, []byte(c.Secret))
		mac.Write([]byte(address))
		header.Set("X-Twilio-Signature", base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return address
}

// TwilioCallSID returns the callSid of a session, the same for all its connections.
func TwilioCallSID(sessionID string) string { return sid("CA", sessionID) }

// sid returns an identifier in Twilio's form, a function of text.
func sid(kind, text string) string {
	sum := sha256.Sum256([]byte(kind + text))
	return kind + hex.EncodeToString(sum[:16])
}

// twilioDialect is Twilio's Media Streams, bidirectional (Connect, Stream).
type twilioDialect struct {
	config     Config
	decoder    aiprotocol.Decoder
	accountSID string
	callSID    string
	streamSID  string
	sequence   int64 // of the last message
	chunks     twilioChunks
}

// twilioChunks has how many frames of each track were sent.
type twilioChunks struct{ inbound, outbound int64 }

// AppendAudio implements Dialect.
func (t *twilioDialect) AppendAudio(dst, frame []byte, track aiprotocol.Track) []byte {
	name, chunks := "inbound", &t.chunks.inbound
	if track == aiprotocol.TrackCallee {
		name, chunks = "outbound", &t.chunks.outbound
	}

	dst = t.begin(dst, "media")
	dst = append(dst, `,"media":{"track":"`...)
	dst = append(dst, name...)
	dst = append(dst, `","chunk":"`...)
	dst = strconv.AppendInt(dst, *chunks+1, 10)
	dst = append(dst, `","timestamp":"`...)
	// Of the first frame it is 0, although chunks count from 1.
	dst = strconv.AppendInt(dst, *chunks*aiprotocol.FrameDuration.Milliseconds(), 10)
	dst = append(dst, `","payload":"`...)
	dst = base64.StdEncoding.AppendEncode(dst, frame)
	*chunks++

	return t.end(append(dst, `"}`...))
}

// begin appends the beginning of a message, with the next sequence number.
func (t *twilioDialect) begin(dst []byte, name string) []byte {
	t.sequence++
	dst = append(dst, `{"event":"`...)
	dst = append(dst, name...)
	dst = append(dst, `","sequenceNumber":"`...)
	dst = strconv.AppendInt(dst, t.sequence, 10)
	return append(dst, '"')
}

func (t *twilioDialect) end(dst []byte) []byte {
	dst = append(dst, `,"streamSid":"`...)
	dst = append(dst, t.streamSID...)
	return append(dst, `"}`...)
}

// Encode implements Dialect.
func (t *twilioDialect) Encode(m *aiprotocol.Message, send Send) {
	switch m.Event {
	case aiprotocol.EventStart:
		t.encodeStart(&m.Start, send)
	case aiprotocol.EventDTMF:
		send(func(dst []byte) []byte {
			dst = append(t.begin(dst, "dtmf"), `,"dtmf":{"track":"inbound_track","digit":`...)
			return t.end(append(event.AppendString(dst, m.DTMF.Digit), '}'))
		})

	case aiprotocol.EventMark:
		send(func(dst []byte) []byte {
			dst = append(t.begin(dst, "mark"), `,"mark":{"name":`...)
			return t.end(append(event.AppendString(dst, m.Mark.Name), '}'))
		})

	case aiprotocol.EventHangup:
		send(func(dst []byte) []byte {
			dst = append(t.begin(dst, "stop"), `,"stop":{"accountSid":"`+t.accountSID+`","callSid":"`+t.callSID+`"}`...)
			return t.end(dst)
		})
	}
}

// twilioStart is the object start of the message start.
type twilioStart struct {
	AccountSID  string      `json:"accountSid"`
	StreamSID   string      `json:"streamSid"`
	CallSID     string      `json:"callSid"`
	Tracks      []string    `json:"tracks"`
	MediaFormat twilioMedia `json:"mediaFormat"`
	Parameters  any         `json:"customParameters"`
}

type twilioMedia struct {
	Encoding   string `json:"encoding"`
	SampleRate int    `json:"sampleRate"`
	Channels   int    `json:"channels"`
}

// encodeStart sends connected and start. The custom parameters are the call's, those of the provider's
// session object, and the call's X-* headers.
func (t *twilioDialect) encodeStart(s *aiprotocol.Start, send Send) {
	t.accountSID, t.callSID = sid("AC", s.AccountID), TwilioCallSID(s.SessionID)
	t.streamSID = sid("MZ", s.SessionID)
	parameters := map[string]any{
		"callId": s.CallID, "otherLegCallId": s.OtherLegCallID, "callerIdNumber": s.CallerIDNumber,
		"calleeIdNumber": s.CalleeIDNumber,
	}

	for name, value := range objectOf(t.config.Session) {
		parameters[name] = value
	}

	for name, value := range s.Parameters {
		parameters[name] = value
	}

	tracks := []string{"inbound"}
	if t.config.Listens {
		tracks = append(tracks, "outbound")
	}

	start, err := json.Marshal(twilioStart{
		AccountSID: t.accountSID, StreamSID: t.streamSID, CallSID: t.callSID, Tracks: tracks,
		MediaFormat: twilioMedia{Encoding: "audio/x-mulaw", SampleRate: s.Media.SampleRate, Channels: 1},
		Parameters:  parameters,
	})
	if err != nil { // strings and what was decoded from JSON: cannot fail
		start = []byte(`{}`)
	}

	send(func(dst []byte) []byte {
		return append(dst, `{"event":"connected","protocol":"Call","version":"1.0.0"}`...)
	})

	send(func(dst []byte) []byte {
		dst = append(t.begin(dst, "start"), `,"start":`...)
		return t.end(append(dst, start...))
	})
}

// Decode implements Dialect.
func (t *twilioDialect) Decode(raw []byte) (*aiprotocol.Message, error) {
	m, err := t.decoder.FromProvider(raw)
	if err != nil {
		return nil, err
	}

	switch m.Event {
	case aiprotocol.EventMedia, aiprotocol.EventMark, aiprotocol.EventClear, aiprotocol.EventTranscript:
		return m, nil
	}

	return nil, aiprotocol.NewError(aiprotocol.ProblemUnknown, "%q is no event of Twilio's Media Streams",
		string(m.Event))
}
