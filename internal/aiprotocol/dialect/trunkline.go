package dialect

import (
	"net/http"

	"trunkline/internal/aiprotocol"
)

func trunklineProtocol() Protocol {
	return Protocol{
		Name: Trunkline, Encodings: []string{aiprotocol.PCM16, aiprotocol.ULaw, aiprotocol.Opus}, Listens: true,
		Prepare: func(_ Config, address string, _ http.Header) string { return address },
		New: func(c Config) Dialect {
			return &trunklineDialect{aiprotocol.Decoder{Extensions: c.Extensions, Listens: c.Listens}}
		},
	}
}

// trunklineDialect is the protocol of the specification, with the extensions.
type trunklineDialect struct{ decoder aiprotocol.Decoder }

// AppendAudio implements Dialect.
func (*trunklineDialect) AppendAudio(dst, frame []byte, track aiprotocol.Track) []byte {
	if track != aiprotocol.NoTrack {
		return aiprotocol.AppendTrackMedia(dst, track, frame)
	}
	return aiprotocol.AppendMedia(dst, frame)
}

// Encode implements Dialect.
func (*trunklineDialect) Encode(m *aiprotocol.Message, send Send) {
	send(func(dst []byte) []byte {
		switch m.Event {
		case aiprotocol.EventStart:
			return aiprotocol.AppendStart(dst, m.Start)
		case aiprotocol.EventDTMF:
			return aiprotocol.AppendDTMF(dst, m.DTMF)
		case aiprotocol.EventMark:
			return aiprotocol.AppendMark(dst, m.Mark)
		case aiprotocol.EventCleared:
			return aiprotocol.AppendCleared(dst, m.Cleared)
		case aiprotocol.EventTransfer:
			return aiprotocol.AppendTransferRefused(dst, m.Destination, m.Refusal)
		case aiprotocol.EventError:
			return aiprotocol.AppendError(dst, m.Refused, m.Refusal)
		}

		return aiprotocol.AppendHangup(dst, m.Hangup)
	})
}

// Decode implements Dialect.
func (t *trunklineDialect) Decode(raw []byte) (*aiprotocol.Message, error) {
	return t.decoder.FromProvider(raw)
}
