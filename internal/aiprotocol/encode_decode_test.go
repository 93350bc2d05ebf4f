package aiprotocol

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

func exampleStart() Start {
	return Start{
		Call:           Call{CallID: "call-1", OtherLegCallID: "call-2"},
		CallerIDNumber: "+15551230001", CalleeIDNumber: "+15551230002", AccountID: "demo",
		Media: Format{PCM16, 24000},
	}
}

func TestMessagesOfTheServiceAreAsTheSpecificationSaysThem(t *testing.T) {
	call := Call{CallID: "c", OtherLegCallID: ""}
	for _, c := range []struct {
		name string
		got  []byte
		want string
	}{
		{"start", AppendStart(nil, exampleStart()),
			`{"event":"start","start":{"callId":"call-1","otherLegCallId":"call-2","callerIdNumber":"+15551230001",` +
				`"calleeIdNumber":"+15551230002","accountId":"demo","mediaFormat":{"encoding":"pcm16","sampleRate":24000}}}`},
		{"media", AppendMedia(nil, []byte{0xff, 0xfe, 0xfd, 0}), `{"event":"media","media":{"payload":"//79AA=="}}`},
		{"dtmf", AppendDTMF(nil, DTMF{Call: call, Digit: "#", Duration: 160 * time.Millisecond}),
			`{"event":"dtmf","dtmf":{"callId":"c","otherLegCallId":"","digit":"#","duration":160}}`},
		{"dtmf of unknown duration", AppendDTMF(nil, DTMF{Call: call, Digit: "D"}),
			`{"event":"dtmf","dtmf":{"callId":"c","otherLegCallId":"","digit":"D"}}`},
		{"hangup", AppendHangup(nil, Hangup{Call: call, Reason: UserBusy}),
			`{"event":"hangup","hangup":{"callId":"c","otherLegCallId":"","reason":"USER_BUSY"}}`},
		{"hangup without a reason", AppendHangup(nil, Hangup{Call: call}),
			`{"event":"hangup","hangup":{"callId":"c","otherLegCallId":""}}`},
		{"mark", AppendMark(nil, Mark{Name: `a"b`, Played: 1500 * time.Millisecond}),
			`{"event":"mark","mark":{"name":"a\"b","playedMs":1500}}`},
		{"cleared", AppendCleared(nil, Cleared{Played: time.Second, Dropped: 20 * time.Millisecond}),
			`{"event":"cleared","cleared":{"playedMs":1000,"droppedMs":20}}`},
		{"error", AppendError(nil, EventDTMF, "no"), `{"event":"error","error":{"event":"dtmf","message":"no"}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if string(c.got) != c.want {
				t.Errorf("got  %s\nwant %s", c.got, c.want)
			}
		})
	}
}

func TestWhatIsWrittenIsReadBack(t *testing.T) {
	call := Call{CallID: "c", OtherLegCallID: "d"}
	press := DTMF{Digit: "*", Duration: 80 * time.Millisecond}
	pressed := press
	pressed.Call = call
	audio := bytes.Repeat([]byte{1, 2, 3}, 50)
	toProvider := map[string]Message{
		string(AppendStart(nil, exampleStart())): {Event: EventStart, Start: exampleStart()},
		string(AppendMedia(nil, audio)):          {Event: EventMedia, Audio: audio},
		string(AppendDTMF(nil, pressed)):         {Event: EventDTMF, DTMF: pressed},
		string(AppendHangup(nil, Hangup{call, NoAnswer})): {Event: EventHangup,
			Hangup: Hangup{call, NoAnswer}},
		string(AppendMark(nil, Mark{"m", time.Second})): {Event: EventMark, Mark: Mark{"m", time.Second}},
		string(AppendCleared(nil, Cleared{time.Second, time.Hour})): {Event: EventCleared,
			Cleared: Cleared{time.Second, time.Hour}},
		string(AppendTransferRefused(nil, "1002", "nö")): {Event: EventTransfer, Destination: "1002",
			Refusal: "nö"},
		string(AppendError(nil, EventDTMF, "nö")): {Event: EventError, Refused: EventDTMF,
			Refusal: "nö"},
	}
	fromProvider := map[string]Message{
		string(AppendMedia(nil, audio)):            {Event: EventMedia, Audio: audio},
		string(AppendClear(nil)):                   {Event: EventClear},
		string(AppendMarkRequest(nil, "ü")):        {Event: EventMark, Mark: Mark{Name: "ü"}},
		string(AppendHangupRequest(nil, "")):       {Event: EventHangup},
		string(AppendHangupRequest(nil, UserBusy)): {Event: EventHangup, Hangup: Hangup{Reason: UserBusy}},
		string(AppendTransferRequest(nil, "1002")): {Event: EventTransfer, Destination: "1002"},
		string(AppendDTMFRequest(nil, press)):      {Event: EventDTMF, DTMF: press},
	}

	for _, strict := range []bool{false, true} {
		d := Decoder{Extensions: true, Strict: strict}
		for raw, want := range toProvider {
			if got, err := d.ToProvider([]byte(raw)); err != nil || !reflect.DeepEqual(*got, want) {
				t.Errorf("strict %v: %s\ngot %+v, %v", strict, raw, got, err)
			}
		}

		for raw, want := range fromProvider {
			if got, err := d.FromProvider([]byte(raw)); err != nil || !reflect.DeepEqual(*got, want) {
				t.Errorf("strict %v: %s\ngot %+v, %v", strict, raw, got, err)
			}
		}
	}
}

func TestExtrasAreUnknownToWhoDidNotOptIn(t *testing.T) {
	var d Decoder
	for _, raw := range [][]byte{
		AppendClear(nil), AppendMarkRequest(nil, "m"), AppendHangupRequest(nil, ""),
		AppendTransferRequest(nil, "1"), AppendDTMFRequest(nil, DTMF{Digit: "1"}),
	} {
		wantProblem(t, raw, d.FromProvider, ProblemUnknown)
	}

	wantProblem(t, AppendMark(nil, Mark{}), d.ToProvider, ProblemUnknown)
	wantProblem(t, AppendCleared(nil, Cleared{}), d.ToProvider, ProblemUnknown)
	wantProblem(t, AppendTransferRefused(nil, "1", "no"), d.ToProvider, ProblemUnknown)
	wantProblem(t, AppendError(nil, EventDTMF, "no"), d.ToProvider, ProblemUnknown)
	d.Extensions = true
	wantProblem(t, AppendStart(nil, exampleStart()), d.FromProvider, ProblemUnknown)
	wantProblem(t, AppendClear(nil), d.ToProvider, ProblemUnknown)
	wantProblem(t, AppendTransferRequest(nil, "1"), d.ToProvider, ProblemField) // a refusal without a reason
}

func wantProblem(t *testing.T, raw []byte, read func([]byte) (*Message, error), want Problem) {
	t.Helper()
	message, err := read(raw)
	var e *Error
	if message != nil || !errors.As(err, &e) || e.Problem != want || e.Error() == "" {
		t.Errorf("%.80s: got %v, %v, want %s", raw, message, err, want)
	}
}

func TestProblemsOfProvidersMessages(t *testing.T) {
	long := strings.Repeat("x", maxTextBytes+1)
	for raw, want := range map[string]Problem{
		``:                              ProblemNotJSON,
		`hello`:                         ProblemNotJSON,
		`[]`:                            ProblemNotJSON,
		`null`:                          ProblemNotJSON,
		"{\"event\":\"\xff\"}":          ProblemNotJSON,
		`{"event":"media"} {}`:          ProblemNotJSON,
		`{}`:                            ProblemNoEvent,
		`{"event":null}`:                ProblemNoEvent,
		`{"event":["media"]}`:           ProblemNoEvent,
		`{"event":"Media","media":{}}`:  ProblemUnknown,
		`{"event":"","media":{}}`:       ProblemUnknown,
		`{"event":"` + long + `"}`:      ProblemUnknown,
		`{"event":"media"}`:             ProblemBody,
		`{"event":"media","media":[]}`:  ProblemBody,
		`{"event":"media","media":"x"}`: ProblemBody,
		`{"event":"media","media":{}}`:  ProblemField,
		`{"event":"media","media":{"payload":null}}`:             ProblemField,
		`{"event":"media","media":{"payload":[1,2]}}`:            ProblemField,
		`{"event":"media","media":{"payload":"A"}}`:              ProblemBase64,
		`{"event":"media","media":{"payload":"AA=A"}}`:           ProblemBase64,
		`{"event":"media","media":{"payload":"not base64!"}}`:    ProblemBase64,
		`{"event":"media","media":{"payload":"__79"}}`:           ProblemBase64,
		`{"event":"clear","clear":null}`:                         ProblemBody,
		`{"event":"mark","mark":{}}`:                             ProblemField,
		`{"event":"mark","mark":{"name":"` + long + `"}}`:        ProblemField,
		`{"event":"hangup","hangup":{"reason":7}}`:               ProblemField,
		`{"event":"transfer","transfer":{"destination":""}}`:     ProblemField,
		`{"event":"dtmf","dtmf":{"digit":"12"}}`:                 ProblemField,
		`{"event":"dtmf","dtmf":{"digit":"a"}}`:                  ProblemField,
		`{"event":"dtmf","dtmf":{"digit":""}}`:                   ProblemField,
		`{"event":"dtmf","dtmf":{"digit":"1","duration":"80"}}`:  ProblemField,
		`{"event":"dtmf","dtmf":{"digit":"1","duration":-1}}`:    ProblemField,
		`{"event":"dtmf","dtmf":{"digit":"1","duration":1e300}}`: ProblemField,
	} {
		d := Decoder{Extensions: true}
		wantProblem(t, []byte(raw), d.FromProvider, want)
	}
}

func TestLenienceEndsWhereStrictnessBegins(t *testing.T) {
	for name, raw := range map[string]string{
		"a member of the message that is not described": `{"event":"media","streamSid":"x","media":{"payload":"AAAA"}}`,
		"a member of the object that is not described":  `{"event":"media","media":{"payload":"AAAA","chunk":1}}`,
		"a member twice":             `{"event":"media","media":{"payload":"AA==","payload":"AAAA"}}`,
		"base64 without padding":     `{"event":"media","media":{"payload":"AAA"}}`,
		"base64 with bits left over": `{"event":"media","media":{"payload":"AB=="}}`,
	} {
		lenient, strict := Decoder{}, Decoder{Strict: true}
		if m, err := lenient.FromProvider([]byte(raw)); err != nil || len(m.Audio) == 0 {
			t.Errorf("%s: a lenient decoder answers %v", name, err)
		}
		if _, err := strict.FromProvider([]byte(raw)); err == nil {
			t.Errorf("%s: a strict decoder takes it", name)
		}
	}
}

// Some providers write no object where it would be empty.
func TestAnEmptyObjectMayBeLeftOut(t *testing.T) {
	for _, strict := range []bool{false, true} {
		d := Decoder{Extensions: true, Strict: strict}
		for raw, want := range map[string]Message{
			`{"event":"clear"}`:              {Event: EventClear},
			`{"event": "hangup"}`:            {Event: EventHangup},
			`{"event":"hangup","hangup":{}}`: {Event: EventHangup},
		} {
			if got, err := d.FromProvider([]byte(raw)); err != nil || !reflect.DeepEqual(*got, want) {
				t.Errorf("strict %v: %s\ngot %+v, %v", strict, raw, got, err)
			}
		}

		for _, raw := range []string{`{"event":"mark"}`, `{"event":"transfer"}`, `{"event":"dtmf"}`,
			`{"event":"media"}`} {
			wantProblem(t, []byte(raw), d.FromProvider, ProblemBody)
		}

		wantProblem(t, []byte(`{"event":"hangup"}`), d.ToProvider, ProblemBody)
	}

	var d Decoder
	if _, err := d.FromProvider([]byte(`{"event":"clear"}`)); err == nil {
		t.Error("clear is understood without the extensions")
	}
}

func TestSlashesMayBeEscaped(t *testing.T) {
	d := Decoder{Strict: true}
	m, err := d.FromProvider([]byte(` {"event":"media","media":{"payload":"\/\/79"}}`))
	if err != nil || !bytes.Equal(m.Audio, []byte{0xff, 0xfe, 0xfd}) {
		t.Errorf("got %v, %v", m, err)
	}
}

func TestProblemsOfTheServicesMessages(t *testing.T) {
	whole := string(AppendStart(nil, exampleStart()))
	for _, c := range [][2]string{
		{`"callId":"call-1",`, ``},
		{`"accountId":"demo",`, `"accountId":null,`},
		{`"encoding":"pcm16"`, `"encoding":"pcm"`},
		{`"sampleRate":24000`, `"sampleRate":8000`},
		{`"sampleRate":24000`, `"sampleRate":"24000"`},
		{`"sampleRate":24000`, `"sampleRate":24000,"x":1`},
		{`"mediaFormat":{"encoding":"pcm16","sampleRate":24000}`, `"mediaFormat":"pcm16"`},
	} {
		raw := strings.Replace(whole, c[0], c[1], 1)
		d := Decoder{Strict: true}
		if raw == whole {
			t.Fatalf("%q is not in %s", c[0], whole)
		}
		if _, err := d.ToProvider([]byte(raw)); err == nil {
			t.Errorf("taken: %s", raw)
		}
	}
}

func TestADecoderForgetsMuchAudio(t *testing.T) {
	var d Decoder
	m, err := d.FromProvider(AppendMedia(nil, make([]byte, 700<<10)))
	if err != nil || len(m.Audio) != 700<<10 {
		t.Fatalf("got %d bytes, %v", len(m.Audio), err)
	}
	if _, err := d.FromProvider(AppendMedia(nil, make([]byte, 160))); err != nil || cap(d.audio) > maxIdleAudioBytes {
		t.Errorf("%d bytes are kept, %v", cap(d.audio), err)
	}
}

func TestAFrameCostsNoAllocation(t *testing.T) {
	format, _ := FormatOf(PCM16)
	audio := bytes.Repeat([]byte{0xff, 0x3e}, format.FrameBytes()/2)

	buffer := AppendMedia(nil, audio)
	d := &Decoder{}
	allocations := testing.AllocsPerRun(100, func() {
		buffer = AppendMedia(buffer[:0], audio)
		if _, err := d.FromProvider(buffer); err != nil {
			t.Fatal(err)
		}
	})
	if allocations != 0 {
		t.Errorf("%v allocations", allocations)
	}
}

func exampleTranscript() Transcript {
	return Transcript{Text: "where is my parcel?", Final: true, Track: TrackCallee, Start: 20 * time.Millisecond,
		End: time.Second}
}

func TestATranscriptIsOfAProviderThatListens(t *testing.T) {
	raw := AppendTranscript(nil, exampleTranscript())
	listens := Decoder{Listens: true}
	m, err := listens.FromProvider(raw)
	if err != nil || m.Transcript != exampleTranscript() {
		t.Errorf("%s is read as %+v, %v", raw, m, err)
	}

	answers := Decoder{Extensions: true}
	if m, err := answers.FromProvider(raw); err == nil {
		t.Errorf("a provider that answers: %+v", m)
	}

	for _, wrong := range [][2]string{
		{`"where is my parcel?"`, `""`}, {`"where is my parcel?"`, `"` + strings.Repeat("a", 17<<10) + `"`},
		{`true`, `1`},
		{`"callee"`, `"agent"`}, {`"callee"`, `""`}, {`20`, `-20`}, {`1000`, `"1000"`}, {`1000`, `1e300`},
	} {
		raw := strings.Replace(string(raw), wrong[0], wrong[1], 1)
		if m, err := listens.FromProvider([]byte(raw)); err == nil {
			t.Errorf("%.100s is read as %+v", raw, m.Transcript)
		}
	}

	m, err = listens.ToProvider(AppendTrackMedia(nil, TrackCaller, []byte{1, 2}))
	if err != nil || m.Track != TrackCaller || !bytes.Equal(m.Audio, []byte{1, 2}) {
		t.Errorf("media with a track: %+v, %v", m, err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"event":"media","media":{"payload":"\/\/79AA=="}}`), true, true)
	f.Add(AppendStart(nil, exampleStart()), false, true)
	f.Add(AppendDTMFRequest(nil, DTMF{Digit: "1", Duration: time.Second}), true, false)
	f.Add(AppendCleared(nil, Cleared{Played: time.Second}), true, true)
	f.Add([]byte(`{"event":"hangup","hangup":{"callId":"","otherLegCallId":""}}`), false, false)
	f.Add(AppendTranscript(nil, exampleTranscript()), false, true)

	f.Fuzz(func(t *testing.T, raw []byte, extensions, strict bool) {
		d := Decoder{Extensions: extensions, Listens: !extensions, Strict: strict}
		m, err := d.FromProvider(raw)
		checkRead(t, m, err)

		if m != nil && m.Event == EventMedia {
			again := AppendMedia(nil, m.Audio)
			audio := bytes.Clone(m.Audio)
			m, err = d.FromProvider(again)
			if err != nil || !bytes.Equal(m.Audio, audio) {
				t.Errorf("%s: read again: %v", again, err)
			}
		}

		if m != nil && m.Event == EventTranscript {
			said := m.Transcript
			m, err = d.FromProvider(AppendTranscript(nil, said))
			if err != nil || m.Transcript.Text != said.Text || m.Transcript.Track != said.Track ||
				m.Transcript.Final != said.Final {
				t.Errorf("%+v read again: %+v, %v", said, m, err)
			}
		}

		m, err = d.ToProvider(raw)
		checkRead(t, m, err)
		if m != nil && m.Event == EventStart {
			want := m.Start
			m, err = d.ToProvider(AppendStart(nil, want))
			if err != nil || !reflect.DeepEqual(m.Start, want) {
				t.Errorf("read again: %+v, %v", m, err)
			}
		}
	})
}

func checkRead(t *testing.T, m *Message, err error) {
	t.Helper()
	var e *Error
	if (m == nil) == (err == nil) || err != nil && !errors.As(err, &e) {
		t.Errorf("got %v, %v", m, err)
	}
	if e != nil && !strings.Contains(problemList(), string(e.Problem)) {
		t.Errorf("problem %q is not listed", e.Problem)
	}
}

func problemList() string {
	var all strings.Builder
	for _, p := range Problems() {
		all.WriteString(string(p) + " ")
	}
	return all.String()
}

func BenchmarkFrame(b *testing.B) {
	audio := make([]byte, 960)
	buffer := AppendMedia(nil, audio)
	var d Decoder
	b.ReportAllocs()

	for b.Loop() {
		buffer = AppendMedia(buffer[:0], audio)
		if _, err := d.FromProvider(buffer); err != nil {
			b.Fatal(err)
		}
	}
}
