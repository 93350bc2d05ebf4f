package dialect

import (
	"net/http"

	"trunkline/internal/aiprotocol"
)

// The protocols.
const (
	Trunkline      = "trunkline"
	Twilio         = "twilio"
	OpenAIRealtime = "openai_realtime"
	DeepgramAgent  = "deepgram_agent"
)

// Config has what a dialect needs of a provider.
type Config struct {
	Secret     string // the vendor's token; "" if none
	Session    []byte // a JSON object for the vendor; nil if none
	Extensions bool   // the provider opted in to the extensions; for Trunkline only
	Listens    bool   // the provider only hears a call, as two tracks, and may send transcripts
	Format     aiprotocol.Format
}

// Protocol describes a dialect.
type Protocol struct {
	Name                 string
	Encodings            []string // that it has, as in aiprotocol.Format
	BinaryAudio          bool     // audio is in binary frames, in both directions
	RequestsWithoutOptIn bool     // the provider may send more than audio without having opted in
	// CloseEndsCall means that a provider that closes the connection normally has ended its part of the
	// call. Otherwise the session connects again.
	CloseEndsCall bool
	Listens       bool // Config.Listens may be set
	TakesSecret   bool // Config.Secret may be set
	TakesSession  bool // Config.Session may be set

	// Prepare returns the address of the handshake and sets the headers that the protocol needs.
	Prepare func(c Config, address string, header http.Header) string
	// New returns the dialect of one connection.
	New func(Config) Dialect
}

// Send sends one message, which appendTo appends to a buffer.
type Send func(appendTo func(dst []byte) []byte)

// Dialect encodes the messages of one connection, and decodes those of the provider. Decode may be called
// while Encode is; each is for one goroutine at a time.
type Dialect interface {
	// AppendAudio appends the message with one frame of a call's audio: the caller's, without a track, or
	// that of a track to a provider that listens. It is for the goroutine that may call Encode.
	AppendAudio(dst, frame []byte, track aiprotocol.Track) []byte
	// Encode sends what the protocol has for a message of the session, which may be nothing. m is one
	// that aiprotocol encodes to a provider, but no media.
	Encode(m *aiprotocol.Message, send Send)
	// Decode decodes a message of the provider as one of aiprotocol's from a provider. It returns nil for
	// one that needs no action. The result is valid until the next message is decoded. The error is an
	// *aiprotocol.Error.
	Decode(raw []byte) (*aiprotocol.Message, error)
}

// Protocols returns all protocols, the default first.
func Protocols() []Protocol {
	return []Protocol{trunklineProtocol(), twilioProtocol(), openAIProtocol(), deepgramProtocol()}
}

// Find returns the protocol with a name; "" is Trunkline.
func Find(name string) (Protocol, bool) {
	for _, p := range Protocols() {
		if name == p.Name || name == "" {
			return p, true
		}
	}
	return Protocol{}, false
}

// Names returns the names of all protocols.
func Names() []string {
	var names []string
	for _, p := range Protocols() {
		names = append(names, p.Name)
	}
	return names
}
