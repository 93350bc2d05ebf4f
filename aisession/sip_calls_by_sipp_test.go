package aisession_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"trunkline/aisession"
	"trunkline/config/aiprovider"
)

// sipp runs a scenario of testdata against a server.
func sipp(t *testing.T, server *userAgent, scenario string, arguments ...string) {
	t.Helper()
	program, err := exec.LookPath("sipp")
	if err != nil {
		skipOrFail(t, "sipp is not installed")
	}

	path, err := filepath.Abs("testdata/" + scenario)
	if err != nil {
		t.Fatal(err)
	}

	run := exec.CommandContext(t.Context(), program, append([]string{
		"-sf", path, "-nostdin", "-timeout", "60", "-timeout_error", "-i", "127.0.0.1", "-s", "ai-prov1", "-trace_err",
		server.Addr().String(),
	}, arguments...)...)
	run.Dir = t.TempDir()
	run.Env = append(os.Environ(), "TERM=dumb")
	output, err := run.CombinedOutput()
	if err != nil {
		logs, _ := filepath.Glob(filepath.Join(run.Dir, "*_errors.log"))
		for _, log := range logs {
			text, _ := os.ReadFile(log)
			output = append(output, text...)
		}
		t.Errorf("sipp: %v\n%s", err, output[max(0, len(output)-4000):])
	}
}

// TestManyCallsBySipp is a PBX with 20 calls, 12 at once, that send recorded
// audio and a key each to a provider in Node. Most of the audio sent must reach
// it, and nothing may be left of the calls.
func TestManyCallsBySipp(t *testing.T) {
	if testing.Short() {
		t.Skip("calls in real time are left out in short runs")
	}
	if os.Geteuid() != 0 {
		skipOrFail(t, "sipp plays audio by a raw socket, which only root may have")
	}

	const (
		calls   = 20
		packets = calls * (66 + 10) // of load.xml: 30 ms each in 2 s, and those of a key
	)
	p := startForeignProvider(t, "node", "testdata/provider.js")
	h := startService(t, aisession.DefaultSettings(), nil)
	h.providers = map[string]aiprovider.Provider{"prov1": p.config("g711_ulaw")}
	server := startSIP(t, 26000, sipHandler(h))
	settled := func() bool {
		return h.metric("trunkline_aisession_active", "ingress", "sip") == 0 && server.portsInUse(t) == 0
	}
	sipp(t, server, "load.xml", "-m", "1", "-mp", "26400")
	p.report(t)
	until(t, "the first to be gone", settled)
	before := runtime.NumGoroutine()
	received, lost, frames := -server.packetsReceived(t), -h.audioLost(), 0
	sipp(t, server, "load.xml", "-m", strconv.Itoa(calls), "-r", "10", "-l", "12", "-mp", "26400")

	for range calls {
		r := p.report(t)
		if want := []string{"start", "media", "dtmf", "media", "hangup"}; !reflect.DeepEqual(r.Events, want) {
			t.Errorf("a session: %+v", r)
		}
		frames += r.Media
	}

	received += server.packetsReceived(t)
	lost += h.audioLost()
	t.Logf("%g of %d packets received, %g lost, %d frames at the provider", received, packets, lost, frames)

	if arrived := received - lost; arrived < 0.8*packets {
		t.Errorf("%g of %d packets reached the provider", arrived, packets)
	}
	if least := 0.8 * packets * 30 / 20; float64(frames) < least {
		t.Errorf("the provider has %d frames, want %g", frames, least)
	}

	// Fewer than one goroutine for each call: calls at once may have opened connections to Redis, which stay.
	until(t, "all to be gone", func() bool { return settled() && runtime.NumGoroutine() < before+calls })
	if got := h.metric("trunkline_aisession_ended_total", "reason", string(aisession.CallerHungUp)); got != calls+1 {
		t.Errorf("%g sessions ended with the call, want %d", got, calls+1)
	}
}

// TestAPBXIsAskedToTransfer: the provider's transfer is a REFER to who called.
func TestAPBXIsAskedToTransfer(t *testing.T) {
	for scenario, c := range map[string]struct {
		reason   aisession.EndReason
		messages []string
	}{
		"refer.xml":   {aisession.Transferred, []string{"start", "transfer", "hangup"}},
		"decline.xml": {aisession.ProviderHungUp, []string{"start", "transfer", "transfer", "hangup"}},
	} {
		t.Run(scenario, func(t *testing.T) {
			p := startProvider(t, 160, nil)
			p.extensions = true
			p.behave = func(v *fakeConnection) {
				_ = v.send(`{"event":"transfer","transfer":{"destination":"+88216123456"}}`)
				if m := v.waitFor(t, "transfer",
					1); string(m.body) != `{"destination":"+88216123456","error":"International numbers may not be called"}` {
					t.Errorf("told %s", m.body)
				}

				_ = v.send(`{"event":"transfer","transfer":{"destination":"1002"}}`)
				if scenario == "decline.xml" {
					if m := v.waitFor(t, "transfer",
						2); string(m.body) != `{"destination":"1002","error":"the transfer failed with CALL_REJECTED"}` {
						t.Errorf("told %s", m.body)
					}
					v.waitFor(t, "media", 20) // the call goes on
					_ = v.send(`{"event":"hangup","hangup":{}}`)
				}
			}

			h := startService(t, aisession.DefaultSettings(), p)
			with := configOf(p, "g711_ulaw")
			with.Extensions = true
			h.providers = map[string]aiprovider.Provider{"prov1": with}
			server := startSIP(t, 27000, sipHandler(h))
			sipp(t, server, scenario, "-m", "1")
			var messages []string

			for _, m := range p.nextConnection().waitHangup(t, "NORMAL_CLEARING") {
				if m.event != "media" {
					messages = append(messages, m.event)
				}
			}

			if strings.Join(messages, " ") != strings.Join(c.messages, " ") {
				t.Errorf("the messages are %v, want %v", messages, c.messages)
			}

			until(t, "the session's end", func() bool {
				return h.metric("trunkline_aisession_ended_total", "reason", string(c.reason)) == 1 &&
					server.portsInUse(t) == 0
			})
		})
	}
}
