package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"trunkline/telephony/sip/siptest"
)

// phone is a baresip, registered as an extension of the demo account, that answers automatically,
// plays a tone and records the received audio.
type phone struct {
	folder string
	port   int
	hertz  int
}

// mediaPort returns the first of the ports at which the phone receives audio.
func (p *phone) mediaPort() int { return p.port + 20_001 }

// newPhone starts a phone that registers with a device password of its user.
func (n *node) newPhone(t *testing.T, username, extension string, port, hertz int) *phone {
	t.Helper()
	p := &phone{siptest.BaresipFolder(t), port, hertz}
	tone := filepath.Join(p.folder, "tone.wav")
	outputOf(t, "sox", "-n", "-r", "8000", "-c", "1", "-b", "16", tone, "synth", "60", "sine", strconv.Itoa(hertz),
		"vol", "0.3")
	n.startPhone(t, p, username, extension, tone)
	return p
}

// newBeeper starts a phone that plays half a second of a tone every second.
func (n *node) newBeeper(t *testing.T, username, extension string, port, hertz int) *phone {
	t.Helper()
	p := &phone{siptest.BaresipFolder(t), port, hertz}
	tone := filepath.Join(p.folder, "tone.wav")
	outputOf(t, "sox", "-n", "-r", "8000", "-c", "1", "-b", "16", tone,
		"synth", "0.5", "sine", strconv.Itoa(hertz), "vol", "0.3", "pad", "0", "0.5", "repeat", "179")
	n.startPhone(t, p, username, extension, tone)
	return p
}

// newSpeaker starts a phone that says a sentence again and again, for two minutes.
func (n *node) newSpeaker(t *testing.T, username, extension string, port int, sentence string) *phone {
	t.Helper()
	p := &phone{folder: siptest.BaresipFolder(t), port: port}
	once, speech := filepath.Join(p.folder, "once.wav"), filepath.Join(p.folder, "speech.wav")
	outputOf(t, "espeak-ng", "-v", "en-us+f3", "-s", "130", "-w", once, sentence)
	outputOf(t, "sox", once, "-r", "8000", "-c", "1", "-b", "16", speech, "pad", "0.7", "1.5", "repeat", "40", "trim",
		"0", "120")
	n.startPhone(t, p, username, extension, speech)
	return p
}

// startPhone starts a phone that plays a file.
func (n *node) startPhone(t *testing.T, p *phone, username, extension, file string) {
	t.Helper()
	password := strings.TrimSpace(n.cli(t, "user", "device", "create", username, "--account", "demo"))
	files := map[string]string{
		"config": strings.Join([]string{
			fmt.Sprintf("sip_listen 127.0.0.1:%d", p.port),
			fmt.Sprintf("rtp_ports %d-%d", p.mediaPort(), p.mediaPort()+8), "net_interface 127.0.0.1",
			"module_path /usr/lib/baresip/modules",
			"module g711.so", "module aufile.so", "module aubridge.so", "module sndfile.so", "module_tmp account.so",
			"module_app menu.so", "module_app ctrl_tcp.so", fmt.Sprintf("ctrl_tcp_listen 127.0.0.1:%d", p.port+1000),
			"audio_source aufile," + file, "audio_player aubridge,x", "snd_path " + p.folder + "/rec", "",
		}, "\n"),
		"accounts": fmt.Sprintf(
			"<sip:%[1]s@127.0.0.1>;auth_user=%[1]s;auth_pass=%[2]s;answermode=auto;audio_codecs=pcmu;regint=60\n",
			extension, password),
	}

	for name, text := range files {
		if err := os.WriteFile(filepath.Join(p.folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	if err := os.Mkdir(filepath.Join(p.folder, "rec"), 0o700); err != nil {
		t.Fatal(err)
	}

	cmd := exec.Command("baresip", "-f", p.folder)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { // unregistering may hang
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
}

// command sends a command of the phone's user: hangup, dial (an address), sndcode (a key).
func (p *phone) command(t *testing.T, name, params string) {
	t.Helper()
	text, err := json.Marshal(map[string]string{"command": name, "params": params})
	if err != nil {
		t.Fatal(err)
	}

	var control net.Conn
	eventually(t, "baresip to listen", func() (err error) {
		control, err = net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", p.port+1000))
		return err
	})
	defer control.Close()

	if _, err := fmt.Fprintf(control, "%d:%s,", len(text), text); err != nil {
		t.Fatal(err)
	}

	_ = control.SetReadDeadline(time.Now().Add(patience))
	if _, err := control.Read(make([]byte, 1)); err != nil { // the phone has received audio
		t.Fatal(err)
	}
}

// press presses a key for a moment.
func (p *phone) press(t *testing.T, key string) {
	t.Helper()
	p.command(t, "sndcode", key)
	time.Sleep(200 * time.Millisecond)
	p.command(t, "sndcode", "\x04")
	time.Sleep(200 * time.Millisecond)
}

// loudestFrequency returns the loudest frequency in the third second of the recording, measured with sox.
func (p *phone) loudestFrequency(t *testing.T) (hertz int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(p.folder, "rec", "*-dec.wav"))
	if err != nil || len(files) != 1 {
		t.Fatalf("recordings: %v (%v)", files, err)
	}

	out, err := exec.Command("sox", files[0], "-n", "trim", "2", "1", "stat").CombinedOutput()
	if err != nil {
		t.Fatalf("sox: %v: %s", err, out)
	}

	for line := range strings.Lines(string(out)) {
		if value, ok := strings.CutPrefix(line, "Rough   frequency:"); ok {
			hertz, err = strconv.Atoi(strings.TrimSpace(value))
		}
	}

	if err != nil || hertz == 0 {
		t.Fatalf("sox prints %s", out)
	}

	return hertz
}

// registrations subscribes to registrations; the returned function waits for a number of them.
func (n *node) registrations(t *testing.T) (await func(phones int)) {
	t.Helper()
	events := n.subscribe(t,
		subscription{paths: wsPaths, token: n.login(t, wsPaths, user("alice").types("AGENT_DEVICE_REGISTER"))})
	return func(phones int) {
		t.Helper()
		events.awaitCount(t, phones)
	}
}
