package api

import (
	"strings"
	"testing"
	"time"

	"trunkline/internal/aiprotocol"
)

// protocol is a message of each event, by the schema that describes it.
func protocol() (toProvider, fromProvider map[string][]byte) {
	call := aiprotocol.Call{CallID: "c", OtherLegCallID: "d"}
	press := aiprotocol.DTMF{Digit: "#", Duration: 160 * time.Millisecond}
	pressed := press
	pressed.Call = call
	format, _ := aiprotocol.FormatOf(aiprotocol.Opus)
	media := aiprotocol.AppendMedia(nil, []byte{0xff, 0xfe, 0xfd, 0xfc})
	return map[string][]byte{
			"ai_start": aiprotocol.AppendStart(nil,
				aiprotocol.Start{Call: call, CallerIDNumber: "+1", CalleeIDNumber: "2", AccountID: "demo",
					Media: format}),
			"ai_media": media,
			"ai_dtmf":  aiprotocol.AppendDTMF(nil, pressed),
			"ai_hangup": aiprotocol.AppendHangup(nil,
				aiprotocol.Hangup{Call: call, Reason: aiprotocol.UserBusy}),
			"ai_mark": aiprotocol.AppendMark(nil, aiprotocol.Mark{Name: "m", Played: time.Second}),
			"ai_cleared": aiprotocol.AppendCleared(nil,
				aiprotocol.Cleared{Played: time.Second, Dropped: time.Minute}),
			"ai_transfer_refused": aiprotocol.AppendTransferRefused(nil, "1002", "nobody is there"),
			"ai_error":            aiprotocol.AppendError(nil, aiprotocol.EventDTMF, "AudioSocket cannot send DTMF"),
		}, map[string][]byte{
			"ai_media":          media,
			"ai_clear":          aiprotocol.AppendClear(nil),
			"ai_mark_request":   aiprotocol.AppendMarkRequest(nil, "m"),
			"ai_hangup_request": aiprotocol.AppendHangupRequest(nil, aiprotocol.NormalClearing),
			"ai_transfer":       aiprotocol.AppendTransferRequest(nil, "1002"),
			"ai_dtmf_request":   aiprotocol.AppendDTMFRequest(nil, press),
			"ai_transcript": aiprotocol.AppendTranscript(nil,
				aiprotocol.Transcript{Text: "hello", Final: true, Track: aiprotocol.TrackCallee,
					Start: time.Second, End: 160 * time.Millisecond}),
		}
}

func TestMessagesToAndFromAProviderAreWhatTheirSchemasSay(t *testing.T) {
	toProvider, fromProvider := protocol()
	strict := aiprotocol.Decoder{Extensions: true, Listens: true, Strict: true}
	for name, text := range toProvider {
		checkSameVerdict(t, name, text, strict.ToProvider)
	}
	for name, text := range fromProvider {
		checkSameVerdict(t, name, text, strict.FromProvider)
	}
	least := aiprotocol.AppendHangup(nil, aiprotocol.Hangup{})
	if err := validateText(t, schema(t, "ai_hangup.json"), least); err != nil {
		t.Errorf("%s: %v", least, err)
	}
}

// checkSameVerdict checks that the schema and the strict decoder both accept a message, and
// that they agree on its altered versions.
func checkSameVerdict(t *testing.T, name string, text []byte, read func([]byte) (*aiprotocol.Message, error)) {
	t.Helper()
	s := schema(t, name+".json")
	if err := validateText(t, s, text); err != nil {
		t.Errorf("%s: %v", text, err)
	}
	spoilt := 0
	for _, change := range [][2]string{
		{`{"event"`, `{"more":1,"event"`}, {`":{"`, `":{"more":1,"`}, {`":{}`, `":{"more":1}`}, {`":{`, `":[{`},
		{`"event":"`, `"event":"x`}, {`"callId":"c",`, ``}, {`"callId":"c"`, `"callId":7`},
		{`"digit":"#"`, `"digit":"E"`},
		{`160`, `"160"`}, {`160`, `-160`}, {`1000`, `null`}, {`"payload":"`, `"payload":"!`}, {`/Q==`, `/Q`},
		{`48000`, `8000`}, {`"text":"hello"`, `"text":""`}, {`true`, `"true"`}, {`"callee"`, `"them"`},
		{`"payload"`, `"track":"them","payload"`},
		{`"accountId":"demo",`, ``}, {`"name":"m"`, `"name":null`}, {`"destination":"1002"`, `"destination":""`},
		{`NORMAL_CLEARING"`, `","x":1`},
	} {
		wrong := strings.Replace(string(text), change[0], change[1], 1)
		if change == [2]string{`":{`, `":[{`} {
			wrong = wrong[:len(wrong)-1] + `]}`
		}
		if wrong == string(text) {
			continue
		}
		spoilt++
		if validateText(t, s, []byte(wrong)) == nil {
			t.Errorf("%s: the schema takes %s", name, wrong)
		}
		if _, err := read([]byte(wrong)); err == nil {
			t.Errorf("%s: the decoder takes %s", name, wrong)
		}
	}
	if spoilt < 3 {
		t.Errorf("%s: only %d wrong messages", name, spoilt)
	}
}
