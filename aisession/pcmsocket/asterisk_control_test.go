package pcmsocket

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"trunkline/config/aiprovider"
	"trunkline/telephony/audio"
)

// The messages are those of Asterisk 23.4.1.
func TestAsterisksMessages(t *testing.T) {
	for raw, want := range map[string]asteriskEvent{
		"MEDIA_START connection_id:media channel:WebSocket/media/0x7f channel_id:1795672155.12 format:slin16 optimal_frame_size:640 ptime:20": {Event: mediaStart,
			ChannelID: "1795672155.12", Format: "slin16"},
		`{"event":"MEDIA_START","connection_id":"media","channel":"WebSocket/media/0x7f","channel_id":"1.2","format":"ulaw","optimal_frame_size":160,"ptime":20,"channel_variables":{"X-Customer":"7"}}`: {Event: mediaStart,
			ChannelID: "1.2", Format: "ulaw", Variables: map[string]string{"X-Customer": "7"}},
		"DTMF_END digit:# channel_id:1.2":                     {Event: dtmfEnd, Digit: "#", ChannelID: "1.2"},
		`{"event":"DTMF_END","channel_id":"1.2","digit":"5"}`: {Event: dtmfEnd, Digit: "5", ChannelID: "1.2"},
		"MEDIA_MARK_PROCESSED":                                {Event: mediaMarkProcessed},
		"MEDIA_MARK_PROCESSED a:b":                            {Event: mediaMarkProcessed, CorrelationID: "a:b"},
		"MEDIA_XOFF":                                          {Event: mediaXOFF},
		`{"event":"MEDIA_XON","channel_id":"1.2"}`:            {Event: mediaXON, ChannelID: "1.2"},
		"ERROR channel_id:1.2 error_text:FLUSH_MEDIA not supported": {Event: "ERROR", ChannelID: "1.2",
			CorrelationID: "supported"},
	} {
		if got, isJSON, ok := parseAsteriskEvent([]byte(raw)); !ok || isJSON != (raw[0] == '{') ||
			got.Event != want.Event || got.Digit != want.Digit ||
			got.ChannelID != want.ChannelID || got.Format != want.Format ||
			!reflect.DeepEqual(got.Variables, want.Variables) {
			t.Errorf("%s: %+v", raw, got)
		}
	}

	for _, raw := range []string{"", " ", "{", "{}", `{"event":1}`, "\xff"} {
		if _, _, ok := parseAsteriskEvent([]byte(raw)); ok {
			t.Errorf("%q is taken", raw)
		}
	}
}

func TestTheFirstFrame(t *testing.T) {
	query := url.Values{"callerIdNumber": {"+49"}, "calleeIdNumber": {"7000"}}
	o, err := newCallStart("media", []byte("MEDIA_START connection_id:m channel_id:1.2 format:slin16 ptime:20"), query,
		aiprovider.Provider{})
	if err != nil || o.asterisk == nil || o.asterisk.json || o.fork != nil || o.request.Call.CallID != "1.2" ||
		o.request.Caller != "+49" ||
		o.request.Callee != "7000" || o.request.Format != (audio.Format{Encoding: audio.PCM16, Rate: 16000}) {
		t.Errorf("plain text: %+v, %v", o.request, err)
	}

	o, err = newCallStart("media",
		[]byte(`{"event":"MEDIA_START","channel_id":"1.2","format":"ulaw","channel_variables":{"X-A":"b","OTHER":"c"}}`),
		nil, aiprovider.Provider{})
	if err != nil || o.asterisk == nil || !o.asterisk.json || o.request.Format.Encoding != audio.ULaw ||
		!reflect.DeepEqual(o.request.Parameters, map[string]string{"X-A": "b"}) {
		t.Errorf("JSON: %+v, %v", o.request, err)
	}

	o, err = newCallStart(audioForkProtocol, []byte(`{"callId":"c","sampleRate":16000}`), nil, aiprovider.Provider{})
	if err != nil || o.fork == nil || o.asterisk != nil || o.fork.rate != 16000 {
		t.Errorf("mod_audio_fork: %+v, %v", o, err)
	}

	o, err = newCallStart(audioForkProtocol, []byte(`{"callId":"c","bidirectional":true}`), nil, aiprovider.Provider{})
	if err != nil || o.fork != nil {
		t.Errorf("mod_audio_fork that plays frames: %+v, %v", o, err)
	}

	for _, raw := range []string{
		"MEDIA_START channel_id:1.2 format:g722", "MEDIA_START channel_id:1.2 format:slin44", "MEDIA_START format:slin",
		"MEDIA_XON", "{}",
		"MEDIA_START channel_id:1.2 format:slinx",
	} {
		if _, err := newCallStart("media", []byte(raw), nil, aiprovider.Provider{}); err == nil {
			t.Errorf("%s is taken", raw)
		}
	}
}

func TestForksFiles(t *testing.T) {
	f := &audioFork{rate: 8000}
	loud, silent := []byte(strings.Repeat("\x01\x20", 160)), make([]byte, 320)
	var messages []string

	for i := range 40 {
		frame := loud
		if i >= 30 {
			frame = silent
		}
		if message := f.add(frame); message != nil {
			messages = append(messages, string(message))
		}
	}

	size := 0
	for _, message := range messages {
		var m struct {
			Type string
			Data struct {
				AudioContentType, AudioContent string
				SampleRate                     int
			}
		}
		if err := json.Unmarshal([]byte(message), &m); err != nil || m.Type != "playAudio" ||
			m.Data.AudioContentType != "raw" || m.Data.SampleRate != 8000 {
			t.Fatalf("%s: %v", message, err)
		}

		raw, err := base64.StdEncoding.DecodeString(m.Data.AudioContent)
		if err != nil {
			t.Fatal(err)
		}

		size += len(raw)
	}

	if len(messages) != 2 || size != 30*320 {
		t.Errorf("%d messages with %d bytes", len(messages), size)
	}
}

func FuzzFirstFrame(f *testing.F) {
	f.Add("media", []byte("MEDIA_START channel_id:1.2 format:slin16"))
	f.Add("", []byte(`{"callId":"c"}`))
	f.Fuzz(func(t *testing.T, subprotocol string, raw []byte) {
		o, err := newCallStart(subprotocol, raw, nil, aiprovider.Provider{})
		if err == nil && (o.request.Call.CallID == "" || o.request.Format.Validate() != nil) {
			t.Errorf("took %+v", o.request)
		}
	})
}
