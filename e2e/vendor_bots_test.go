package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
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
func startBot(t *testing.T, file string, settings map[string]string) (*foreignProgram, string) {
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

// awaitLine waits until the program has printed a line.
func (f *foreignProgram) awaitLine(t *testing.T, line string) {
	t.Helper()
	f.await(t, "to say "+line, func(out, _ []string) bool { return slices.Contains(out, line) })
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
		call.talk(t, func() bool { return call.loudSampleCount() > 4000 })
		bot.awaitLine(t, "signature True")
		bot.awaitLine(t, "connected sales +4930123456")
		call.press(t, "1")
		bot.awaitLine(t, "key 1")
		call.press(t, "2")
		bot.awaitLine(t, "stop")

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

			vendors.awaitLine(t, c.says)
			if protocol == "openai_realtime" {
				vendors.awaitLine(t, "openai heard True i1")
			}
			loud := call.loudSampleCount()
			if !strings.Contains(end, "hangup NORMAL_CLEARING") || loud < 2000 || loud > 15000 {
				t.Errorf("the call ended with %s after %d loud samples", end, loud)
			}
		})
	}
}
