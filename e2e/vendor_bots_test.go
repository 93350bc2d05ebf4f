package e2e

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// botFolder is the variable with the folder of botPackages for a test that runs again in a namespace, without network.
const botFolder = "TEST_BOT_PACKAGES"

// botPackages has the vendors' packages: pipecat without the models that it would bring; and a recogniser.
var botPackages = sync.OnceValues(func() (string, error) {
	if dir := os.Getenv(botFolder); dir != "" {
		return dir, nil
	}
	dir := filepath.Join(scratch, "bots")
	return dir, install(dir,
		"python3 -m venv . && bin/python -m pip install -q --disable-pip-version-check aiofiles aiohttp docstring_parser "+
			"loguru 'loudness==0.2.0' numpy pillow pydantic sentencex soxr wait_for2 websockets twilio 'openai>=3.57' 'deepgram-sdk>=7.17' pocketsphinx && "+
			"bin/python -m pip install -q --disable-pip-version-check --no-deps pipecat-ai==1.14.0")
})

// startBot runs a program of testdata/bots and returns the port that it listens on.
func startBot(t *testing.T, file string, settings map[string]string) (*foreign, string) {
	t.Helper()
	python := filepath.Join(installed(t, botPackages), "bin", "python")
	script, err := filepath.Abs("testdata/bots/" + file)
	if err != nil {
		t.Fatal(err)
	}

	bot := startForeign(t, settings, python, script)
	port := ""
	bot.await(t, "to listen", func(out, _ []string) bool {
		for _, line := range out {
			port, _ = strings.CutPrefix(line, "listening ")
		}
		return port != ""
	})

	return bot, port
}

// said waits until a bot has printed a line.
func (f *foreign) said(t *testing.T, line string) {
	t.Helper()
	f.await(t, "to say "+line, func(out, _ []string) bool { return slices.Contains(out, line) })
}

// mediaCall is a call over /media/v1, that sends a tone.
type mediaCall struct {
	*websocket.Conn
	mu    sync.Mutex
	heard int // loud samples
	ended chan string
}

func (n *node) mediaCall(t *testing.T, provider string) *mediaCall {
	t.Helper()
	key := strings.TrimSpace(
		n.cli(t, "apikey", "create", "--account", "demo", "--name", "media-"+provider, "--scope", "calls"))
	dialer := websocket.Dialer{TLSClientConfig: &tls.Config{RootCAs: n.roots}}
	conn, _, err := dialer.Dial("wss"+strings.TrimPrefix(n.url, "https")+"/media/v1/"+provider+"?token="+key, nil)
	if err != nil {
		t.Fatal(err)
	}

	c := &mediaCall{Conn: conn, ended: make(chan string, 1)}
	if err := conn.WriteMessage(websocket.TextMessage,
		[]byte(`{"callId":"c1","callerIdNumber":"+4930123456"}`)); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = conn.Close() })
	go c.read()
	return c
}

func (c *mediaCall) read() {
	for {
		_, raw, err := c.ReadMessage()
		if err != nil {
			c.ended <- err.Error()
			return
		}

		loud := 0
		for i := 1; i < len(raw); i += 2 {
			if level := int8(raw[i]); level > 8 || level < -8 {
				loud++
			}
		}

		c.mu.Lock()
		c.heard += loud
		c.mu.Unlock()
	}
}

// talk sends a square wave until the call ends or done says so.
func (c *mediaCall) talk(t *testing.T, done func() bool) {
	t.Helper()
	frame := []byte(strings.Repeat("\x00\x20\x00\x20\x00\xe0\x00\xe0", 40))
	for deadline := time.Now().Add(patience); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the call goes on in vain")
		}
		if c.WriteMessage(websocket.BinaryMessage, frame) != nil {
			return
		}
	}
}

func (c *mediaCall) loud() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.heard
}

func (c *mediaCall) press(t *testing.T, key string) {
	t.Helper()
	if err := c.WriteMessage(websocket.TextMessage, []byte(`{"event":"dtmf","dtmf":{"digit":"`+key+`"}}`)); err != nil {
		t.Error(err)
	}
}

// createBot configures a provider that answers and returns its id.
func (n *node) createBot(t *testing.T, protocol, address, session string) (id string) {
	t.Helper()
	return n.configure(t, fmt.Sprintf(
		`{"name":"bot","media":{"audioFormat":"g711_ulaw","sampleRate":8000},"websocket":{"url":%q},"protocol":%q,"secret":"bot-secret-1","session":%s}`,
		address, protocol, session))
}

// configure configures a provider and returns its id.
func (n *node) configure(t *testing.T, document string) (id string) {
	t.Helper()
	header := map[string]string{"X-Account-ID": "demo", "Content-Type": typeJSON}
	for name, value := range n.dialler(t, "admin").header {
		header[name] = value
	}

	a := n.mustCall(t, http.MethodPost, "/api/v2/config/ai_providers", header, document)
	var made struct{ ID string }
	if err := json.Unmarshal(a.body, &made); err != nil || a.status != http.StatusCreated ||
		strings.Contains(string(a.body), "bot-secret-1") {
		t.Fatalf("configuring a bot: %v", a)
	}

	return made.ID
}

// TestBotsOfTheVendors has bots made with the vendors' own packages answer calls, unchanged.
func TestBotsOfTheVendors(t *testing.T) {
	t.Parallel()
	n := newNode(t, "bots", map[string]string{
		"TRUNKLINE_DEMO_PASSWORD": password, "TRUNKLINE_AI_PROVIDER_ALLOW_NETWORKS": "127.0.0.0/8",
	})
	n.start(t)

	t.Run("pipecat for Twilio", func(t *testing.T) {
		bot, port := startBot(t, "twilio_pipecat.py", map[string]string{
			"TOKEN": "bot-secret-1", "REST": n.url, "SSL_CERT_FILE": filepath.Join(n.dir, "tls", "cert.pem"),
		})
		call := n.mediaCall(t, n.createBot(t, "twilio", "ws://127.0.0.1:"+port+"/media?a=b", `{"bot":"sales"}`))
		call.talk(t, func() bool { return call.loud() > 4000 })
		bot.said(t, "signature True")
		bot.said(t, "connected sales +4930123456")
		call.press(t, "1")
		bot.said(t, "key 1")
		call.press(t, "2")
		bot.said(t, "stop")

		if end := <-call.ended; !strings.Contains(end, "hangup NORMAL_CLEARING") {
			t.Errorf("the call ended with %s", end)
		}
	})

	vendors, port := startBot(t, "vendors.py", nil)
	for protocol, c := range map[string]struct{ path, session, says string }{
		"openai_realtime": {"/v1/realtime", `{"model":"gpt-realtime","greeting":"Hello!"}`,
			"openai audio/pcmu audio/pcmu /v1/realtime?model=gpt-realtime"},
		"deepgram_agent": {"/v1/agent/converse", `{"agent":{"greeting":"Hello!"}}`,
			"deepgram mulaw none Hello! Token bot-secret-1"},
	} {
		t.Run(protocol, func(t *testing.T) {
			call := n.mediaCall(t, n.createBot(t, protocol, "ws://127.0.0.1:"+port+c.path, c.session))
			end := ""
			call.talk(t, func() bool {
				select {
				case end = <-call.ended:
				default:
				}
				return end != ""
			})

			if end == "" {
				end = <-call.ended
			}

			vendors.said(t, c.says)
			if protocol == "openai_realtime" {
				vendors.said(t, "openai heard True i1")
			}
			if !strings.Contains(end, "hangup NORMAL_CLEARING") || call.loud() < 2000 || call.loud() > 15000 {
				t.Errorf("the call ended with %s after %d loud samples", end, call.loud())
			}
		})
	}
}
