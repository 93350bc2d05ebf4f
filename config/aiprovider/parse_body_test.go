package aiprovider

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"trunkline/internal/fault"
	"trunkline/internal/netguard"
)

const whole = `{"name":"Echo","media":{"audioFormat":"pcm16","sampleRate":24000},` +
	`"websocket":{"url":"wss://ai.example.com/voice","headers":{"Authorization":"Bearer abc","X-Tenant":"7"}},` +
	`"extensions":true,"fallback":"return"}`

func members(t testing.TB, body string) map[string]json.RawMessage {
	t.Helper()
	var m map[string]json.RawMessage
	if err := json.Unmarshal([]byte(body), &m); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return m
}

// codes returns the faults as "field code", sorted.
func codes(err error) []string {
	var f *fault.Error
	var all []string
	if errors.As(err, &f) {
		for _, field := range f.Fields {
			all = append(all, field.Field+" "+field.Code)
		}
	}
	slices.Sort(all)
	return all
}

func TestAWholeBodyIsReadAsItWasSent(t *testing.T) {
	d, err := parseBody(members(t, whole), "", false)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(d)
	if want := strings.Replace(whole, `{"name"`, `{"id":"","name"`, 1); err != nil || string(text) != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
}

func TestBodiesThatAreTaken(t *testing.T) {
	for name, change := range map[string][2]string{
		"as it stands":                      {`""`, `""`},
		"ulaw":                              {`"pcm16","sampleRate":24000`, `"g711_ulaw","sampleRate":8000`},
		"opus, the rate as a float":         {`"pcm16","sampleRate":24000`, `"opus","sampleRate":4.8e4`},
		"without what is optional":          {`,"extensions":true,"fallback":"return"`, ``},
		"no headers":                        {`,"headers":{"Authorization":"Bearer abc","X-Tenant":"7"}`, ``},
		"no header in headers":              {`{"Authorization":"Bearer abc","X-Tenant":"7"}`, `{}`},
		"an empty value":                    {`"7"`, `""`},
		"every character of a token":        {`X-Tenant`, "aZ09!#$%&'*+-.^_`|~"},
		"an Origin":                         {`X-Tenant`, `Origin`},
		"a port and a query":                {`ai.example.com/voice`, `ai.example.com:8443/voice?a=b%20c`},
		"an IPv6 address":                   {`ai.example.com/voice`, `[2606:4700::1111]:443`},
		"the scheme in capitals":            {`wss://`, `WSS://`},
		"a name of 128 characters":          {`"Echo"`, `"` + strings.Repeat("ü", 128) + `"`},
		"an address that the guard refuses": {`ai.example.com`, `127.0.0.1`}, // at connect time, not here
	} {
		body := strings.Replace(whole, change[0], change[1], 1)
		if _, err := parseBody(members(t, body), "", false); err != nil {
			t.Errorf("%s: %v %v", name, err, codes(err))
		}
	}
}

func TestBodiesThatAreRefused(t *testing.T) {
	const format, rate, headers, url = `"audioFormat":"pcm16"`, `"sampleRate":24000`, `{"Authorization":"Bearer abc","X-Tenant":"7"}`, `"wss://ai.example.com/voice"`
	many := `{"X-0":""`
	for i := range maxHeaders {
		many += fmt.Sprintf(`,"X-%d":""`, i+1)
	}

	big := func(n int) string { return `"` + strings.Repeat("v", n) + `"` }
	for _, c := range []struct {
		name, from, to string
		want           []string
	}{
		{"no name", `"name":"Echo",`, ``, []string{"name required"}},
		{"an empty name", `"Echo"`, `""`, []string{"name required"}},
		{"a name of spaces", `"Echo"`, `"  "`, []string{"name required"}},
		{"a null name", `"Echo"`, `null`, []string{"name wrong_type"}},
		{"a name that is a number", `"Echo"`, `7`, []string{"name wrong_type"}},
		{"a long name", `"Echo"`, big(129), []string{"name too_long"}},
		{"a line break in the name", `"Echo"`, `"a\nb"`, []string{"name invalid"}},
		{"no media", `"media":{"audioFormat":"pcm16","sampleRate":24000},`, ``, []string{"media required"}},
		{"null media", `{"audioFormat":"pcm16","sampleRate":24000}`, `null`, []string{"media wrong_type"}},
		{"media that is an array", `{"audioFormat":"pcm16","sampleRate":24000}`, `[]`, []string{"media wrong_type"}},
		{"empty media", format + `,` + rate, ``, []string{"media.audioFormat required", "media.sampleRate required"}},
		{"no rate", `,` + rate, ``, []string{"media.sampleRate required"}},
		{"a null rate", `24000`, `null`, []string{"media.sampleRate wrong_type"}},
		{"a rate in a string", `24000`, `"24000"`, []string{"media.sampleRate wrong_type"}},
		{"a rate of another format", `24000`, `8000`, []string{"media.sampleRate mismatch"}},
		{"a rate with a fraction", `24000`, `24000.5`, []string{"media.sampleRate mismatch"}},
		{"a negative rate", `24000`, `-24000`, []string{"media.sampleRate mismatch"}},
		{"an unknown format", `"pcm16"`, `"g711_alaw"`, []string{"media.audioFormat unsupported"}},
		{"a format in capitals", `"pcm16"`, `"PCM16"`, []string{"media.audioFormat unsupported"}},
		{"a format that is a boolean", `"pcm16"`, `true`, []string{"media.audioFormat wrong_type"}},
		{"an unknown member of media", rate, rate + `,"channels":1`, []string{"media.channels unknown"}},
		{"no websocket", `"websocket":{"url":"wss://ai.example.com/voice","headers":` + headers + `},`, ``,
			[]string{"websocket required"}},
		{"no url", `"url":` + url + `,`, ``, []string{"websocket.url required"}},
		{"an empty url", url, `""`, []string{"websocket.url required"}},
		{"a null url", url, `null`, []string{"websocket.url wrong_type"}},
		{"ws", `wss://`, `ws://`, []string{"websocket.url unsupported"}},
		{"https", `wss://`, `https://`, []string{"websocket.url unsupported"}},
		{"no scheme", `wss://`, `//`, []string{"websocket.url unsupported"}},
		{"an opaque url", `wss://`, `wss:`, []string{"websocket.url invalid"}},
		{"no host", `ai.example.com`, ``, []string{"websocket.url invalid"}},
		{"a port alone", `ai.example.com`, `:443`, []string{"websocket.url invalid"}},
		{"port 0", `ai.example.com`, `ai.example.com:0`, []string{"websocket.url invalid"}},
		{"a port too high", `ai.example.com`, `ai.example.com:65536`, []string{"websocket.url invalid"}},
		{"a colon without port", `ai.example.com`, `ai.example.com:`, []string{"websocket.url invalid"}},
		{"a user", `ai.example.com`, `me:secret@ai.example.com`, []string{"websocket.url invalid"}},
		{"a fragment", `/voice`, `/voice#top`, []string{"websocket.url invalid"}},
		{"an empty fragment", `/voice`, `/voice#`, []string{"websocket.url invalid"}},
		{"a space", `/voice`, `/vo ice`, []string{"websocket.url invalid"}},
		{"a control character", `/voice`, `/vo\u0001ice`, []string{"websocket.url invalid"}},
		{"a host that is not ASCII", `ai.example.com`, `bücher.example`, []string{"websocket.url invalid"}},
		{"a long url", `/voice`, `/` + strings.Repeat("v", netguard.MaxURL), []string{"websocket.url too_long"}},
		{"an unknown member of websocket", `"headers"`, `"subprotocol":"x","headers"`,
			[]string{"websocket.subprotocol unknown"}},
		{"headers that are an array", headers, `[]`, []string{"websocket.headers wrong_type"}},
		{"null headers", headers, `null`, []string{"websocket.headers wrong_type"}},
		{"a null value", `"7"`, `null`, []string{"websocket.headers.X-Tenant wrong_type"}},
		{"a value that is a number", `"7"`, `7`, []string{"websocket.headers.X-Tenant wrong_type"}},
		{"a line break in a value", `"7"`, `"7\r\nX-Other: 1"`, []string{"websocket.headers.X-Tenant invalid"}},
		{"a value that ends in a space", `"7"`, `"7 "`, []string{"websocket.headers.X-Tenant invalid"}},
		{"a long value", `"7"`, big(maxHeaderValue + 1), []string{"websocket.headers.X-Tenant too_long"}},
		{"values that are long together", headers, `{"A":` + big(6<<10) + `,"B":` + big(6<<10) + `}`,
			[]string{"websocket.headers too_long"}},
		{"many headers", headers, many + `}`, []string{"websocket.headers too_many"}},
		{"a space in a header's name", `X-Tenant`, `X Tenant`, []string{"websocket.headers.X Tenant invalid"}},
		{"a colon in a header's name", `X-Tenant`, `X:`, []string{"websocket.headers.X: invalid"}},
		{"a header's name that is not ASCII", `X-Tenant`, `Ü`, []string{"websocket.headers.Ü invalid"}},
		{"an empty header's name", `X-Tenant`, ``, []string{"websocket.headers. invalid"}},
		{"a name twice", `X-Tenant`, `authorization`, []string{"websocket.headers.authorization repeated"}},
		{"Host", `X-Tenant`, `Host`, []string{"websocket.headers.Host reserved"}},
		{"Connection", `X-Tenant`, `connection`, []string{"websocket.headers.connection reserved"}},
		{"Upgrade", `X-Tenant`, `UPGRADE`, []string{"websocket.headers.UPGRADE reserved"}},
		{"Sec-WebSocket-Key", `X-Tenant`, `Sec-WebSocket-Key`,
			[]string{"websocket.headers.Sec-WebSocket-Key reserved"}},
		{"Sec-WebSocket-Protocol", `X-Tenant`, `sec-websocket-protocol`,
			[]string{"websocket.headers.sec-websocket-protocol reserved"}},
		{"Content-Length", `X-Tenant`, `Content-Length`, []string{"websocket.headers.Content-Length reserved"}},
		{"Transfer-Encoding", `X-Tenant`, `Transfer-Encoding`,
			[]string{"websocket.headers.Transfer-Encoding reserved"}},
		{"extensions that are a string", `true`, `"true"`, []string{"extensions wrong_type"}},
		{"null extensions", `true`, `null`, []string{"extensions wrong_type"}},
		{"an unknown fallback", `"return"`, `"queue"`, []string{"fallback unsupported"}},
		{"a fallback that is an object", `"return"`, `{"action":"hangup"}`, []string{"fallback wrong_type"}},
		{"an id", `"name"`, `"id":"mine","name"`, []string{"id read_only"}},
		{"an unknown member", `"name"`, `"nmae":"x","name"`, []string{"nmae unknown"}},
		{"all at once", `"Echo","media":{"audioFormat":"pcm16"`, `7,"media":{"audioFormat":"opus"`,
			[]string{"media.sampleRate mismatch", "name wrong_type"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			body := strings.Replace(whole, c.from, c.to, 1)
			if body == whole {
				t.Fatalf("%q is not in the body", c.from)
			}

			_, err := parseBody(members(t, body), "", false)
			if fault.KindOf(err) != fault.KindInvalid || !slices.Equal(codes(err), c.want) {
				t.Errorf("got %v %q, want %q", err, codes(err), c.want)
			}
		})
	}
}

func TestPlainWebSocketIsForDevelopment(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "LOCALHOST:9555": true, "ai.localhost": true, "localhost.": true, "127.0.0.1:9555": true,
		"127.8.9.1":  true,
		"[::1]:9555": true, "[::ffff:127.0.0.1]": true,
		"ai.example.com": false, "10.0.0.1": false, "[fd00::1]": false, "notlocalhost": false,
		"localhost.example.com": false,
		"127.0.0.1.example.com": false, "0.0.0.0": false,
	} {
		body := members(t, strings.Replace(whole, "wss://ai.example.com", "ws://"+host, 1))
		if _, err := parseBody(body, "", true); (err == nil) != want {
			t.Errorf("ws://%s with loopback allowed: %v", host, err)
		}
		if _, err := parseBody(body, "", false); err == nil {
			t.Errorf("ws://%s is accepted without loopback allowed", host)
		}
	}

	if _, err := parseBody(members(t, strings.Replace(whole, "wss://", "http://", 1)), "", true); err == nil {
		t.Error("http is no WebSocket")
	}
}

func TestFaultsNeverRepeatAHeadersValue(t *testing.T) {
	body := strings.Replace(whole, `Bearer abc`, `Bearer sesame\u0000`, 1)
	_, err := parseBody(members(t, body), "", false)
	if text, _ := json.Marshal(fault.As(err)); strings.Contains(string(text), "sesame") {
		t.Errorf("%s", text)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte(`{"websocket":{"url":"ws://[::1%25eth0]:80","headers":{"\u0000":"` + "\u007f" + `"}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var body map[string]json.RawMessage
		if json.Unmarshal(raw, &body) != nil {
			return
		}

		d, err := parseBody(body, "", true)
		if err != nil {
			if fault.KindOf(err) != fault.KindInvalid || len(codes(err)) == 0 {
				t.Fatalf("%s: %v", raw, err)
			}
			return
		}

		// An accepted body is accepted again in the form of the response.
		text, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}

		if _, err := parseBody(members(t, string(text)), "", true); err != nil {
			t.Fatalf("%s became %s: %v", raw, text, err)
		}
	})
}

func TestProtocols(t *testing.T) {
	const ulaw = `"media":{"audioFormat":"g711_ulaw","sampleRate":8000}`
	with := func(members string) string {
		return strings.Replace(strings.Replace(whole, `"media":{"audioFormat":"pcm16","sampleRate":24000}`, ulaw, 1),
			`"extensions":true`, members, 1)
	}

	for name, c := range map[string]struct {
		members string
		want    []string
	}{
		"trunkline by name": {`"protocol":"trunkline"`, nil},
		"twilio":            {`"protocol":"twilio","secret":"tok","session":{"bot":"sales"}`, nil},
		"openai": {`"protocol":"openai_realtime","secret":"sk-1","session":{"model":"gpt-realtime","tools":[]}`,
			nil},
		"deepgram": {`"protocol":"deepgram_agent","secret":"k","session":{"agent":{"greeting":"Hi"}}`,
			nil},
		"no protocol of ours":         {`"protocol":"vapi"`, []string{"protocol unsupported"}},
		"an empty protocol":           {`"protocol":""`, []string{"protocol unsupported"}},
		"a protocol that is a number": {`"protocol":1`, []string{"protocol wrong_type"}},
		"a secret for trunkline":      {`"secret":"k"`, []string{"secret unsupported"}},
		"a session for trunkline":     {`"session":{}`, []string{"session unsupported"}},
		"an empty secret":             {`"protocol":"twilio","secret":""`, []string{"secret invalid"}},
		"a line break in the secret":  {`"protocol":"twilio","secret":"a\nb"`, []string{"secret invalid"}},
		"a long secret": {`"protocol":"twilio","secret":"` + strings.Repeat("a", 1025) + `"`,
			[]string{"secret too_long"}},
		"a session that is an array": {`"protocol":"openai_realtime","session":[]`,
			[]string{"session wrong_type"}},
		"a null session": {`"protocol":"openai_realtime","session":null`,
			[]string{"session wrong_type"}},
		"a session above 32 KiB": {`"protocol":"openai_realtime","session":{"a":"` +
			strings.Repeat("a", 32<<10) + `"}`, []string{"session too_long"}},
		"spaces do not count": {`"protocol":"openai_realtime","session":{` + strings.Repeat(" ", 33<<10) +
			`}`, nil},
		"a listener of queues":       {`"mode":"listen","queues":["sales","7001@pbx"]`, nil},
		"a listener of none":         {`"mode":"listen","queues":[]`, nil},
		"queues of one that answers": {`"queues":["sales"]`, []string{"queues unsupported"}},
		"queues that are no strings": {`"mode":"listen","queues":[7]`, []string{"queues wrong_type"}},
		"a queue without a name":     {`"mode":"listen","queues":["a",""]`, []string{"queues[1] invalid"}},
		"too many queues": {`"mode":"listen","queues":["a"` + strings.Repeat(`,"a"`, 1000) + `]`,
			[]string{"queues too_many"}},
		"a custom parameter not a string": {`"protocol":"twilio","session":{"a":1,"b":"x"}`,
			[]string{"session.a wrong_type"}},
	} {
		if _, err := parseBody(members(t, with(c.members)), "", false); !slices.Equal(codes(err), c.want) {
			t.Errorf("%s: %v", name, codes(err))
		}
	}

	pcm := strings.Replace(whole, `"extensions":true`, `"protocol":"twilio"`, 1)
	if _, err := parseBody(members(t, pcm), "", false); !slices.Equal(codes(err),
		[]string{"media.audioFormat unsupported"}) {
		t.Errorf("pcm16 over twilio: %v", codes(err))
	}
}
