package pcmsocket

import (
	"reflect"
	"testing"
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
