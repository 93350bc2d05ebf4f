package pcmsocket

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"trunkline/config/aiprovider"
)

func TestFirstMessage(t *testing.T) {
	for name, c := range map[string]struct {
		raw  string
		want firstMessage
		ok   bool
	}{
		"the least": {`{"callId":"a"}`, firstMessage{CallID: "a", SampleRate: 8000}, true},
		"all and more": {`{"callId":"a","otherLegCallId":"b","callerIdNumber":"+49","calleeIdNumber":"7","sampleRate":16000,"x":{"y":1}}`,
			firstMessage{CallID: "a", OtherLegCallID: "b", CallerIDNumber: "+49", CalleeIDNumber: "7",
				SampleRate: 16000},
			true},
		"a parameter": {`{"callId":"a","X-Customer":"7","X-N":1,"x-a":"b"}`,
			firstMessage{CallID: "a", SampleRate: 8000, parameters: map[string]string{"X-Customer": "7"}}, true},
		"a session's id": {`{"callId":"a","sessionId":"9b2f6a51-3c1d-4a53-8a7e-6b1e0c5d9f22"}`,
			firstMessage{CallID: "a", SampleRate: 8000, SessionID: "9b2f6a51-3c1d-4a53-8a7e-6b1e0c5d9f22"}, true},
		"another's id":   {`{"callId":"a","sessionId":"../x"}`, firstMessage{}, false},
		"no callId":      {`{}`, firstMessage{}, false},
		"no object":      {`[]`, firstMessage{}, false},
		"no JSON":        {`callId`, firstMessage{}, false},
		"a wrong type":   {`{"callId":7}`, firstMessage{}, false},
		"an odd rate":    {`{"callId":"a","sampleRate":11025}`, firstMessage{}, false},
		"a rate of zero": {`{"callId":"a","sampleRate":0}`, firstMessage{}, false},
		"a long callId":  {`{"callId":"` + strings.Repeat("a", 257) + `"}`, firstMessage{}, false},
		"controls":       {`{"callId":"a\u0000b"}`, firstMessage{}, false},
		"no UTF-8":       {"{\"callId\":\"\xff\"}", firstMessage{}, false},
		"much too long":  {`{"callId":"a","x":"` + strings.Repeat("a", 17<<10) + `"}`, firstMessage{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseFirstMessage([]byte(c.raw))
			if (err == nil) != c.ok || c.ok && !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestVoicesOfAFirstMessage(t *testing.T) {
	for raw, want := range map[string]struct{ answers, listens bool }{
		`{"callId":"a"}`: {true, true},
		`{"callId":"a","channels":1,"track":"caller"}`: {true, true},
		`{"callId":"a","channels":2}`:                  {false, true},
		`{"callId":"a","track":"callee"}`:              {false, true},
		`{"callId":"a","channels":3}`:                  {false, false},
		`{"callId":"a","channels":-1}`:                 {false, false},
		`{"callId":"a","track":"inbound"}`:             {false, false},
	} {
		m, err := parseFirstMessage([]byte(raw))
		answers, listens := m.checkVoices(aiprovider.Provider{}) == nil, m.checkVoices(
			aiprovider.Provider{Listens: true}) == nil
		if err != nil || answers != want.answers || listens != want.listens {
			t.Errorf("%s: %v, a provider that answers takes it: %v, one that listens: %v", raw, err, answers, listens)
		}
	}
}

func FuzzFirstMessage(f *testing.F) {
	f.Add([]byte(`{"callId":"a","sampleRate":16000}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if m, err := parseFirstMessage(raw); err == nil && (m.CallID == "" || m.format().Validate() != nil) {
			t.Errorf("took %+v", m)
		}
		if _, duration, ok := parseDTMF(raw); ok && (duration < 0 || duration > time.Minute) {
			t.Errorf("a press of %v", duration)
		}
	})
}
