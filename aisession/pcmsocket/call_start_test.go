package pcmsocket

import (
	"net/url"
	"reflect"
	"testing"

	"trunkline/config/aiprovider"
	"trunkline/telephony/audio"
)

func TestTheFirstFrame(t *testing.T) {
	query := url.Values{"callerIdNumber": {"+49"}, "calleeIdNumber": {"7000"}}
	start, err := newCallStart("media", []byte("MEDIA_START connection_id:m channel_id:1.2 format:slin16 ptime:20"), query,
		aiprovider.Provider{})
	if err != nil || start.asterisk == nil || start.asterisk.json || start.fork != nil ||
		start.request.Call.CallID != "1.2" ||
		start.request.Caller != "+49" ||
		start.request.Callee != "7000" || start.request.Format != (audio.Format{Encoding: audio.PCM16, Rate: 16000}) {
		t.Errorf("plain text: %+v, %v", start.request, err)
	}

	start, err = newCallStart("media",
		[]byte(`{"event":"MEDIA_START","channel_id":"1.2","format":"ulaw","channel_variables":{"X-A":"b","OTHER":"c"}}`),
		nil, aiprovider.Provider{})
	if err != nil || start.asterisk == nil || !start.asterisk.json || start.request.Format.Encoding != audio.ULaw ||
		!reflect.DeepEqual(start.request.Parameters, map[string]string{"X-A": "b"}) {
		t.Errorf("JSON: %+v, %v", start.request, err)
	}

	start, err = newCallStart(audioForkProtocol, []byte(`{"callId":"c","sampleRate":16000}`), nil,
		aiprovider.Provider{})
	if err != nil || start.fork == nil || start.asterisk != nil || start.fork.rate != 16000 {
		t.Errorf("mod_audio_fork: %+v, %v", start, err)
	}

	start, err = newCallStart(audioForkProtocol, []byte(`{"callId":"c","bidirectional":true}`), nil,
		aiprovider.Provider{})
	if err != nil || start.fork != nil {
		t.Errorf("mod_audio_fork that plays frames: %+v, %v", start, err)
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

func FuzzFirstFrame(f *testing.F) {
	f.Add("media", []byte("MEDIA_START channel_id:1.2 format:slin16"))
	f.Add("", []byte(`{"callId":"c"}`))
	f.Fuzz(func(t *testing.T, subprotocol string, raw []byte) {
		start, err := newCallStart(subprotocol, raw, nil, aiprovider.Provider{})
		if err == nil && (start.request.Call.CallID == "" || start.request.Format.Validate() != nil) {
			t.Errorf("took %+v", start.request)
		}
	})
}
