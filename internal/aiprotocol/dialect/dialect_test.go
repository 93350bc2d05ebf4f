package dialect

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"trunkline/internal/aiprotocol"
)

var update = flag.Bool("update", false, "write the golden files")

// conversations have, for each protocol, what its provider sends: after the third a clear is carried out as the
// session does, with half of the audio played.
var conversations = map[string]struct {
	config   Config
	provider []string
}{
	Trunkline: {Config{Extensions: true}, []string{
		`{"event":"media","media":{"payload":"` + silence(320) + `"}}`,
		`{"event":"mark","mark":{"name":"greeting"}}`,
		`{"event":"clear"}`,
		`{"event":"transfer","transfer":{"destination":"7000"}}`,
		`{"event":"hangup","hangup":{"reason":"USER_BUSY"}}`,
		`{"event":"shout"}`,
	}},
	Twilio: {Config{Secret: "12345", Session: []byte(`{"bot":"sales"}`)}, []string{
		`{"event":"media","streamSid":"MZ0","media":{"payload":"` + silence(320) + `"}}`,
		`{"event":"mark","streamSid":"MZ0","mark":{"name":"greeting"}}`,
		`{"event":"clear","streamSid":"MZ0"}`,
		`{"event":"hangup","hangup":{}}`,
	}},
	OpenAIRealtime: {Config{Secret: "sk-1",
		Session: []byte(
			`{"model":"gpt-realtime","instructions":"Be kind.","greeting":"Hello!","audio":{"output":{"voice":"marin"}},"tools":[{"type":"function","name":"transfer"}]}`)},
		[]string{
			`{"type":"session.created","event_id":"e1","session":{"type":"realtime"}}`,
			`{"type":"response.output_audio.delta","event_id":"e2","response_id":"r1","item_id":"i1","output_index":0,"content_index":0,"delta":"` +
				silence(320) + `"}`,
			`{"type":"input_audio_buffer.speech_started","event_id":"e3","audio_start_ms":100,"item_id":"i2"}`,
			`{"type":"response.output_audio.delta","event_id":"e4","response_id":"r1","item_id":"i1","output_index":0,"content_index":0,"delta":"` +
				silence(160) + `"}`,
			`{"type":"response.output_audio.delta","event_id":"e5","response_id":"r2","item_id":"i3","output_index":0,"content_index":0,"delta":"` +
				silence(160) + `"}`,
			`{"type":"response.output_item.done","event_id":"e6","response_id":"r2","output_index":1,"item":{"id":"i4","type":"function_call","status":"completed","call_id":"c1","name":"transfer","arguments":"{\"destination\":\"7000\"}"}}`,
			`{"type":"response.output_item.done","event_id":"e7","response_id":"r3","output_index":0,"item":{"id":"i5","type":"function_call","status":"completed","call_id":"c2","name":"weather","arguments":"{}"}}`,
			`{"type":"response.output_item.done","event_id":"e8","response_id":"r3","output_index":0,"item":{"id":"i6","type":"function_call","status":"incomplete","call_id":"c3","name":"hangup","arguments":"{"}}`,
			`{"type":"response.output_item.done","event_id":"e9","response_id":"r4","output_index":0,"item":{"id":"i7","type":"function_call","status":"completed","call_id":"c4","name":"hangup","arguments":"{}"}}`,
			`{"type":"error","event_id":"e10","error":{"type":"invalid_request_error","code":"invalid_value","message":"no such voice"}}`,
			`{"type":"response.output_audio.delta","delta":"!"}`,
			`{"kind":"x"}`,
		}},
	DeepgramAgent: {Config{Secret: "dg",
		Session: []byte(
			`{"agent":{"greeting":"Hello!","think":{"provider":{"type":"open_ai","temperature":0.70}}},"audio":{"output":{"bitrate":48000}}}`)},
		[]string{
			`{"type":"Welcome","request_id":"q"}`,
			`{"type":"SettingsApplied"}`,
			`{"type":"UserStartedSpeaking"}`,
			`{"type":"ConversationText","role":"user","content":"hi"}`,
			`{"type":"FunctionCallRequest","functions":[{"id":"f0","name":"lookup","arguments":"{}","client_side":false},{"id":"f1","name":"transfer","arguments":"{\"destination\":\"7000\"}","client_side":true}]}`,
			`{"type":"FunctionCallRequest","functions":[{"id":"f2","name":"weather","arguments":"{}","client_side":true}]}`,
			`{"type":"FunctionCallRequest","functions":[{"id":"f3","name":"transfer","arguments":"{}","client_side":true}]}`,
			`{"type":"FunctionCallRequest","functions":[{"id":"f4","name":"hangup","arguments":"{\"reason\":\"USER_BUSY\"}","client_side":true}]}`,
			`{"type":"Error","description":"no such model","code":"INVALID_SETTINGS"}`,
			`[]`,
		}},
}

func silence(bytes int) string {
	return base64.StdEncoding.EncodeToString([]byte(strings.Repeat("\xff", bytes)))
}

func ulaw() aiprotocol.Format { return aiprotocol.Format{Encoding: aiprotocol.ULaw, SampleRate: 8000} }

// TestGoldenConversations plays one conversation in each protocol, line by line: > is to the provider, < from it,
// = what the session reads.
func TestGoldenConversations(t *testing.T) {
	for _, p := range Protocols() {
		t.Run(p.Name, func(t *testing.T) {
			got := play(t, p)
			file := "testdata/" + p.Name + ".golden"
			if *update {
				if err := os.WriteFile(file, got, 0o600); err != nil {
					t.Fatal(err)
				}
			}

			want, err := os.ReadFile(file)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("the conversation is another than in %s: %v\n%s", file, err, got)
			}
		})
	}
}

func play(t *testing.T, p Protocol) []byte {
	t.Helper()
	var lines bytes.Buffer
	c := conversations[p.Name]
	c.config.Format = ulaw()
	header := http.Header{}
	fmt.Fprintf(&lines, "%s\n", p.Prepare(c.config, "wss://bot.example.com/media?a=b", header))

	for _, name := range []string{"Authorization", "X-Twilio-Signature"} {
		if value := header.Get(name); value != "" {
			fmt.Fprintf(&lines, "%s: %s\n", name, value)
		}
	}

	d := p.New(c.config)
	send := func(appendTo func([]byte) []byte) {
		text := appendTo([]byte("> "))
		if !json.Valid(text[2:]) {
			t.Errorf("no JSON: %s", text)
		}
		fmt.Fprintf(&lines, "%s\n", text)
	}

	audio := func() {
		frame := d.AppendAudio(nil, bytes.Repeat([]byte{0x7f}, 160), aiprotocol.NoTrack)
		if p.BinaryAudio {
			frame = fmt.Appendf(nil, "%d bytes", len(frame))
		}
		fmt.Fprintf(&lines, "> %s\n", frame)
	}

	call := aiprotocol.Call{CallID: "call-1", OtherLegCallID: "call-2"}
	d.Encode(&aiprotocol.Message{Event: aiprotocol.EventStart, Start: aiprotocol.Start{
		Call: call, CallerIDNumber: "+4930123456", CalleeIDNumber: "7", AccountID: "demo", Media: ulaw(),
		SessionID: "s1", Parameters: map[string]string{"X-Customer": `Jane "J"`},
	}}, send)
	audio()
	audio()
	d.Encode(&aiprotocol.Message{Event: aiprotocol.EventDTMF,
		DTMF: aiprotocol.DTMF{Call: call, Digit: "5", Duration: 160 * time.Millisecond}}, send)

	for _, raw := range c.provider {
		fmt.Fprintf(&lines, "< %s\n", raw)
		m, err := d.Decode([]byte(raw))
		switch {
		case err != nil:
			var e *aiprotocol.Error
			if !errors.As(err, &e) {
				t.Errorf("%s: %v is no *aiprotocol.Error", raw, err)
			}
			fmt.Fprintf(&lines, "= %s: %v\n", e.Problem, err)
			continue
		case m == nil:
			fmt.Fprintf(&lines, "=\n")
			continue
		}

		fmt.Fprintf(&lines, "= %s audio %d mark %q destination %q reason %q refusal %q after audio %v\n", m.Event,
			len(m.Audio), m.Mark.Name,
			m.Destination, m.Hangup.Reason, m.Refusal, m.AfterAudio)

		switch m.Event {
		case aiprotocol.EventClear:
			d.Encode(&aiprotocol.Message{Event: aiprotocol.EventCleared,
				Cleared: aiprotocol.Cleared{Played: 20 * time.Millisecond, Dropped: 20 * time.Millisecond}}, send)
		case aiprotocol.EventMark:
			d.Encode(&aiprotocol.Message{Event: aiprotocol.EventMark,
				Mark: aiprotocol.Mark{Name: m.Mark.Name, Played: 40 * time.Millisecond}}, send)
		case aiprotocol.EventTransfer:
			d.Encode(&aiprotocol.Message{Event: aiprotocol.EventTransfer, Destination: m.Destination,
				Refusal: "nobody is there"}, send)
		case aiprotocol.EventFunction:
			d.Encode(&aiprotocol.Message{Event: aiprotocol.EventError, Refused: m.Event, Refusal: m.Refusal}, send)
		}
	}

	audio()
	d.Encode(&aiprotocol.Message{Event: aiprotocol.EventHangup,
		Hangup: aiprotocol.Hangup{Call: call, Reason: aiprotocol.NormalClearing}}, send)

	return lines.Bytes()
}

func TestAnAudioFrameAllocatesNothing(t *testing.T) {
	for _, p := range Protocols() {
		c := conversations[p.Name].config
		c.Format = ulaw()
		d := p.New(c)
		d.Encode(&aiprotocol.Message{Event: aiprotocol.EventStart},
			func(appendTo func([]byte) []byte) { appendTo(nil) })
		buffer, frame := make([]byte, 0, 1024), make([]byte, 160)
		media := map[string][]byte{
			Trunkline: aiprotocol.AppendMedia(nil, frame), Twilio: aiprotocol.AppendMedia(nil, frame),
			OpenAIRealtime: []byte(`{"type":"response.output_audio.delta","item_id":"i","delta":"` + silence(160) +
				`"}`),
			DeepgramAgent: []byte(`{"type":"History"}`),
		}[p.Name]

		n := testing.AllocsPerRun(100, func() {
			d.AppendAudio(buffer, frame, aiprotocol.NoTrack)
			if _, err := d.Decode(media); err != nil {
				t.Fatal(err)
			}
		})
		if n > 0 {
			t.Errorf("%s: %v allocations a frame", p.Name, n)
		}
	}
}

func TestNames(t *testing.T) {
	if want := []string{"trunkline", "twilio", "openai_realtime", "deepgram_agent"}; !slices.Equal(Names(), want) {
		t.Errorf("%q", Names())
	}
	if p, ok := Find(""); !ok || p.Name != Trunkline {
		t.Errorf("the default is %s", p.Name)
	}
	if _, ok := Find("vapi"); ok {
		t.Error("finds vapi")
	}
}

func FuzzDecode(f *testing.F) {
	for _, c := range conversations {
		for _, raw := range c.provider {
			f.Add([]byte(raw))
		}
	}

	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, p := range Protocols() {
			d := p.New(Config{Format: ulaw()})
			send := func(appendTo func([]byte) []byte) {
				if text := appendTo(nil); !json.Valid(text) {
					t.Errorf("%s: no JSON: %q", p.Name, text)
				}
			}

			m, err := d.Decode(raw)
			var e *aiprotocol.Error
			if err != nil && (m != nil || !errors.As(err, &e)) {
				t.Errorf("%s: %v with %v", p.Name, m, err)
			}

			if m == nil {
				continue
			}
			if m.Event == aiprotocol.EventTransfer && m.Destination == "" {
				t.Errorf("%s: a transfer to nowhere", p.Name)
			}

			d.Encode(&aiprotocol.Message{Event: aiprotocol.EventCleared, Cleared: aiprotocol.Cleared{Dropped: 1}}, send)
			d.Encode(&aiprotocol.Message{Event: aiprotocol.EventError, Refused: m.Event, Refusal: m.Refusal}, send)
			d.Encode(&aiprotocol.Message{Event: aiprotocol.EventTransfer, Destination: m.Destination, Refusal: "x"},
				send)
		}
	})
}
