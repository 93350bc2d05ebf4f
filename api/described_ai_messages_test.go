package api

import (
	"strings"
	"testing"
	"time"

	"trunkline/internal/aiprotocol"
)

// protocolMessages returns a message of each event, by the schema that describes it.
func protocolMessages() (toProvider, fromProvider map[string][]byte) {
	call := aiprotocol.Call{CallID: "c", OtherLegCallID: "d"}
	pressed := aiprotocol.DTMF{Call: call, Digit: "#", Duration: 160 * time.Millisecond}
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
			"ai_clear":          []byte(`{"event":"clear","clear":{}}`),
			"ai_mark_request":   []byte(`{"event":"mark","mark":{"name":"m"}}`),
			"ai_hangup_request": []byte(`{"event":"hangup","hangup":{"reason":"NORMAL_CLEARING"}}`),
			"ai_transfer":       []byte(`{"event":"transfer","transfer":{"destination":"1002"}}`),
			"ai_dtmf_request":   []byte(`{"event":"dtmf","dtmf":{"digit":"#","duration":160}}`),
			"ai_transcript": []byte(`{"event":"transcript","transcript":{"text":"hello","final":true,` +
				`"track":"callee","startMs":1000,"endMs":160}}`),
		}
}

func TestMessagesToAndFromAProviderAreWhatTheirSchemasSay(t *testing.T) {
	toProvider, fromProvider := protocolMessages()
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
