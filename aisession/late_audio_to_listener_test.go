package aisession

import (
	"testing"

	"trunkline/config/aiprovider"
	"trunkline/internal/aiprotocol"
	"trunkline/telephony/audio"
)

// TestAProviderThatListensHearsWhatComesLate: half a second late is too late for a conversation.
func TestAProviderThatListensHearsWhatComesLate(t *testing.T) {
	for _, listens := range []bool{false, true} {
		format := audio.Format{Encoding: audio.ULaw, Rate: 8000}
		request := &Request{Listens: listens, RTPTimestamps: true, Provider: aiprovider.Provider{
			Format: aiprotocol.Format{Encoding: string(audio.PCM16), SampleRate: 16000}}}
		track, err := newTrack("caller", format, request)
		if err != nil {
			t.Fatal(err)
		}

		packet := make([]byte, 160)
		track.jitter.Put(0, packet)
		for range 26 {
			_, _ = track.jitter.Next(nil, len(packet))
		}
		track.jitter.Put(160, packet)
		if heard := track.jitter.Stats().Late == 0; heard != listens {
			t.Errorf("listens %v: heard %v", listens, heard)
		}
	}
}
