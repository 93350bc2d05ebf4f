package aicheck

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"trunkline/cmd/trunkline/ai/aiecho"
	"trunkline/internal/aiprotocol"
)

// checkProvider runs a check of a provider, with the configuration as change has it.
func checkProvider(t *testing.T, provider http.Handler, change func(*Config)) *Report {
	t.Helper()
	server := httptest.NewServer(provider)
	defer server.Close()

	format, _ := aiprotocol.FormatOf(aiprotocol.ULaw)
	config := Config{URL: "ws" + strings.TrimPrefix(server.URL, "http"), Format: format, Duration: minDuration}
	if change != nil {
		change(&config)
	}

	report, err := Run(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}

	return report
}

// notPassed returns the points that did not pass, as "name result".
func notPassed(r *Report) (points []string) {
	for _, p := range r.Points {
		if p.Result != Pass {
			points = append(points, p.Name+" "+string(p.Result))
		}
	}
	return points
}

func TestTheEchoPasses(t *testing.T) {
	for _, format := range aiprotocol.Formats() {
		t.Run(format.Encoding, func(t *testing.T) {
			t.Parallel()
			p := aiecho.New(io.Discard)
			r := checkProvider(t, p, func(c *Config) { c.Format = format })
			p.Close()
			var text strings.Builder
			if err := r.Print(&text); err != nil {
				t.Fatal(err)
			}
			if !r.OK || len(notPassed(r)) > 0 || len(r.Points) != 10 {
				t.Errorf("\n%s", &text)
			}
			if want := "25 media, as described"; !strings.Contains(text.String(), want) {
				t.Errorf("want %q in\n%s", want, &text)
			}
		})
	}
}

// provider runs behave on an upgraded connection, then reads until the peer has closed it.
type provider func(conn *websocket.Conn)

func (p provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	conn, err := new(websocket.Upgrader).Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer conn.Close()

	p(conn)
	for {
		if _, _, err := conn.ReadMessage(); err != nil {
			return
		}
	}
}

// answering returns a provider that sends each text after start, in a frame of its own.
func answering(texts ...string) provider {
	return func(conn *websocket.Conn) {
		_, _, _ = conn.ReadMessage()
		for _, text := range texts {
			_ = conn.WriteMessage(websocket.TextMessage, []byte(text))
		}
	}
}

func media(audio []byte) string { return string(aiprotocol.AppendMedia(nil, audio)) }

func TestWhatIsFoundInAProvider(t *testing.T) {
	frame := media(make([]byte, 160))

	pcm, _ := aiprotocol.FormatOf(aiprotocol.PCM16)
	opus, _ := aiprotocol.FormatOf(aiprotocol.Opus)
	for name, c := range map[string]struct {
		provider http.Handler
		change   func(*Config)
		want     []string
	}{
		"nothing to say":            {answering(), nil, []string{"messages warn", "audio warn"}},
		"chunks that are no frames": {answering(media(make([]byte, 200)), media(nil)), nil, nil},
		"a burst":                   {answering(media(make([]byte, 8000*31))), nil, []string{"pace warn"}},
		"half a sample": {answering(media(make([]byte, 961))), func(c *Config) { c.Format = pcm },
			[]string{"chunks fail"}},
		"no opus packet": {answering(media(nil), media([]byte{0xfb, 0x3f})),
			func(c *Config) { c.Format = opus }, []string{"chunks fail"}},
		"no JSON": {answering(frame, "hello"), nil, []string{"messages fail"}},
		"wrong base64": {answering(frame, `{"event":"media","media":{"payload":"?"}}`), nil,
			[]string{"messages fail"}},
		"base64 without padding": {answering(`{"event":"media","media":{"payload":"AAA"}}`), nil,
			[]string{"messages warn"}},
		"a member not described": {answering(`{"event":"media","streamSid":"1","media":{"payload":"AAAA"}}`), nil,
			[]string{"messages warn"}},
		"an event not described":    {answering(frame, `{"event":"pong"}`), nil, []string{"messages warn"}},
		"an extra nobody asked for": {answering(frame, `{"event":"clear","clear":{}}`), nil, []string{"messages warn"}},
		"extras that were agreed": {answering(frame, `{"event":"clear","clear":{}}`,
			`{"event":"mark","mark":{"name":"a"}}`), func(c *Config) { c.Extensions = true }, nil},
		"an end it asks for": {answering(frame, `{"event":"hangup","hangup":{}}`),
			func(c *Config) { c.Extensions, c.Duration = true, time.Minute }, []string{"ping warn"}},
		"media before start": {provider(
			func(conn *websocket.Conn) { _ = conn.WriteMessage(websocket.TextMessage, []byte(frame)) }), nil,
			[]string{"start fail"}},
		"binary frames": {provider(func(conn *websocket.Conn) {
			_, _, _ = conn.ReadMessage()
			_ = conn.WriteMessage(websocket.BinaryMessage, []byte(frame))
		}), nil, []string{"frames fail", "messages warn", "audio warn"}},
		"2 MiB at once": {answering(media(make([]byte, 2<<20))), nil,
			[]string{"messages warn", "audio warn", "ping warn", "stays fail"}},
		"no pong": {provider(func(conn *websocket.Conn) {
			conn.SetPingHandler(func(string) error { return nil })
			answering(frame)(conn)
		}), nil, []string{"ping fail"}},
		"a close in the middle": {provider(func(conn *websocket.Conn) {
			answering(frame)(conn)
			_ = conn.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(1011, "oops"))
		}), nil, []string{"ping warn", "stays fail"}},
		"a break in the middle": {provider(
			func(conn *websocket.Conn) { answering(frame)(conn); _ = conn.NetConn().Close() }), nil,
			[]string{"ping warn", "stays fail"}},
		"another close": {provider(func(conn *websocket.Conn) {
			conn.SetCloseHandler(func(int, string) error {
				return conn.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(1001, ""))
			})
			answering(frame)(conn)
		}), nil, []string{"close warn"}},
		"no answer to the close": {provider(func(conn *websocket.Conn) {
			conn.SetCloseHandler(func(int, string) error { return conn.NetConn().Close() })
			answering(frame)(conn)
		}), nil, []string{"close fail"}},
		"no WebSocket": {http.NotFoundHandler(), nil, []string{"connection fail"}},
		"a redirect": {http.RedirectHandler("/elsewhere", http.StatusFound), nil,
			[]string{"connection fail"}},
		"a header it wants is missing": {http.HandlerFunc(
			func(w http.ResponseWriter, r *http.Request) { http.Error(w, "", http.StatusUnauthorized) }), nil,
			[]string{"connection fail"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := checkProvider(t, c.provider, c.change)
			if got := notPassed(r); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q\n%+v", got, c.want, r.Points)
			}
			if wantOK := !strings.Contains(strings.Join(c.want, " "), "fail"); r.OK != wantOK {
				t.Errorf("OK is %v", r.OK)
			}
		})
	}
}

func TestTheHeadersAreSent(t *testing.T) {
	r := checkProvider(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer sesame" {
			http.Error(w, "", http.StatusUnauthorized)
			return
		}
		answering(media(make([]byte, 160))).ServeHTTP(w, r)
	}), func(c *Config) { c.Header = http.Header{"Authorization": {"Bearer sesame"}} })
	if !r.OK {
		t.Errorf("%+v", r.Points)
	}
}

func TestACheckThatIsBrokenOff(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(provider(func(*websocket.Conn) { cancel() }))
	defer server.Close()
	config := Config{URL: "ws" + strings.TrimPrefix(server.URL, "http"), Format: aiprotocol.Formats()[1],
		Duration: time.Minute}
	if _, err := Run(ctx, config); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestValidate(t *testing.T) {
	good := Config{URL: "wss://x/y", Format: aiprotocol.Formats()[0], Duration: time.Second}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}

	for name, change := range map[string]func(*Config){
		"a scheme": func(c *Config) { c.URL = "https://x" }, "no host": func(c *Config) { c.URL = "wss:///x" },
		"a format": func(c *Config) { c.Format = aiprotocol.Format{} }, "short": func(c *Config) { c.Duration = 0 },
	} {
		bad := good
		change(&bad)
		if bad.Validate() == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestOtherProtocols(t *testing.T) {
	pcm := `{"type":"response.output_audio.delta","item_id":"i","delta":"` + strings.Repeat("////", 40) + `"}`
	for name, c := range map[string]struct {
		protocol string
		texts    []string
		want     []string
	}{
		"twilio": {"twilio",
			[]string{media(make([]byte, 160)), `{"event":"mark","mark":{"name":"m"}}`, `{"event":"clear"}`}, nil},
		"a bot that speaks trunkline": {"twilio", []string{`{"event":"hangup"}`},
			[]string{"messages fail", "audio warn"}},
		"openai": {"openai_realtime",
			[]string{`{"type":"session.created"}`, pcm, `{"type":"input_audio_buffer.speech_started"}`}, nil},
		"an error of openai's": {"openai_realtime",
			[]string{pcm, `{"type":"error","error":{"message":"no such voice"}}`}, []string{"messages fail"}},
		"deepgram without audio": {"deepgram_agent",
			[]string{`{"type":"Welcome"}`, `{"type":"UserStartedSpeaking"}`}, []string{"audio warn"}},
	} {
		r := checkProvider(t, answering(c.texts...),
			func(config *Config) { config.Protocol, config.Secret = c.protocol, "s" })
		if got := notPassed(r); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v\n%+v", name, got, c.want, r.Points)
		}
	}
}
