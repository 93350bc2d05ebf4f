package aisession_test

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"trunkline/aisession"
	"trunkline/config/aiprovider"
	"trunkline/telephony/audio"
	"trunkline/telephony/sip/siptest"
)

// TestARealPhone is a baresip that calls a provider in Python, receives its own audio and presses keys.
// It runs in a network namespace, because baresip opens further sockets.
func TestARealPhone(t *testing.T) {
	const mark = "AISESSION_TEST_NAMESPACE"
	if testing.Short() {
		t.Skip("real phones are left out in short runs")
	}

	if os.Getenv(mark) == "" {
		for _, program := range []string{"baresip", "unshare", "ip", "python3"} {
			if _, err := exec.LookPath(program); err != nil {
				skipOrFail(t, program+" is not installed")
			}
		}

		if out, err := exec.Command("unshare", "-n", "true").CombinedOutput(); err != nil {
			skipOrFail(t, "no network namespace can be made: "+string(out))
		}

		t.Parallel() // it is another process that works
		again := exec.Command("unshare", "-n", "sh", "-c", `ip link set lo up && exec "$0" "$@"`, os.Args[0],
			"-test.run=^TestARealPhone$", "-test.v")
		again.Env = append(os.Environ(), mark+"=1")
		out, err := again.CombinedOutput()
		if err != nil {
			t.Errorf("in the namespace: %v\n%s", err, out)
		}

		return
	}

	for i, c := range []struct{ codec, encoding string }{{"pcmu", "g711_ulaw"}, {"pcma", "pcm16"}, {"opus", "pcm16"}} {
		t.Run(c.codec+" to "+c.encoding, func(t *testing.T) {
			p := startPython(t)
			h := startService(t, aisession.DefaultSettings(), nil)
			h.providers = map[string]aiprovider.Provider{"prov1": p.config(c.encoding)}
			server := startSIP(t, 30000, sipHandler(h))
			phone := startBaresip(t, 5100+10*i, c.codec)
			phone.command("dial", fmt.Sprintf("sip:ai-prov1@%s", server.Addr()))
			phone.wait("CALL_ESTABLISHED")
			time.Sleep(time.Second)

			for _, key := range []string{"5", "#"} {
				phone.command("sndcode", key)
				time.Sleep(300 * time.Millisecond)
				phone.command("sndcode", "\x04")
			}

			time.Sleep(1500 * time.Millisecond)
			phone.command("hangup", "")
			r := p.report(t)
			keys := 0

			for _, event := range r.Events {
				if event == "dtmf" {
					keys++
				}
			}

			if keys != 2 || r.Events[0] != "start" || r.Events[len(r.Events)-1] != "hangup" || r.Media < 50 {
				t.Errorf("the provider's report: %+v", r)
			}

			phone.hears(t)
		})
	}
}

// baresip is a phone from Debian.
type baresip struct {
	t       *testing.T
	folder  string
	control net.Conn
	events  chan string
}

func startBaresip(t *testing.T, port int, codec string) *baresip {
	t.Helper()
	b := &baresip{t: t, folder: siptest.BaresipFolder(t), events: make(chan string, 100)}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(b.folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	if err := os.Mkdir(filepath.Join(b.folder, "rec"), 0o700); err != nil {
		t.Fatal(err)
	}

	tone := samples(8000, 10*time.Second)
	head := []byte("RIFF....WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x80\x3e\x00\x00\x02\x00\x10\x00data....")
	binary.LittleEndian.PutUint32(head[4:], uint32(len(head)+len(tone)-8))
	binary.LittleEndian.PutUint32(head[40:], uint32(len(tone)))
	write("tone.wav", string(head)+string(tone))
	write("config", fmt.Sprintf(`sip_listen 127.0.0.1:%[1]d
net_interface 127.0.0.1
module_path /usr/lib/baresip/modules
module g711.so
module opus.so
module aufile.so
module aubridge.so
module sndfile.so
module_tmp account.so
module_app menu.so
module_app ctrl_tcp.so
ctrl_tcp_listen 127.0.0.1:%[2]d
audio_source aufile,%[3]s/tone.wav
audio_player aubridge,x
snd_path %[3]s/rec
`, port, port+1000, b.folder)) // port+1 is its TLS
	write("accounts", fmt.Sprintf("<sip:phone@127.0.0.1;transport=udp>;regint=0;audio_codecs=%s\n", codec))
	cmd := exec.Command("baresip", "-f", b.folder)
	log, err := os.Create(filepath.Join(b.folder, "log"))
	if err != nil {
		t.Fatal(err)
	}

	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if b.control != nil {
			_ = b.control.Close()
		}

		_ = cmd.Process.Kill() // it may hang in unregistering
		_ = cmd.Wait()
		_ = log.Close()

		if text, _ := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("the phone's log: %s", text[max(0, len(text)-2000):])
		}
	})

	until(t, "baresip to listen", func() (ok bool) {
		var err error
		b.control, err = net.Dial("tcp", fmt.Sprint("127.0.0.1:", port+1000))
		return err == nil
	})

	go b.read()
	return b
}

// read takes netstrings of JSON.
func (b *baresip) read() {
	defer close(b.events)

	for r := bufio.NewReader(b.control); ; {
		text, err := r.ReadString('}')
		if err != nil {
			return
		}

		if _, after, ok := strings.Cut(text, `"type":"`); ok {
			kind, _, _ := strings.Cut(after, `"`)
			select {
			case b.events <- kind:
			default:
			}
		}
	}
}

func (b *baresip) command(name, params string) {
	b.t.Helper()
	text, err := json.Marshal(map[string]string{"command": name, "params": params})
	if err == nil {
		_, err = fmt.Fprintf(b.control, "%d:%s,", len(text), text)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *baresip) wait(kind string) {
	b.t.Helper()
	for limit := time.After(patience); ; {
		select {
		case got, ok := <-b.events:
			if got == kind {
				return
			}
			if !ok {
				b.t.Fatalf("baresip ended before %s", kind)
			}
		case <-limit:
			b.t.Fatalf("baresip did not come to %s", kind)
		}
	}
}

// hears checks that the phone received its own tone.
func (b *baresip) hears(t *testing.T) {
	t.Helper()
	var files []string
	until(t, "a recording", func() bool {
		files, _ = filepath.Glob(filepath.Join(b.folder, "rec", "*-dec.wav"))
		return len(files) > 0
	})

	wav, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}

	rate := int(binary.LittleEndian.Uint32(wav[24:]))
	step := int(binary.LittleEndian.Uint16(wav[32:])) // stereo where the codec is opus
	var mono []byte

	for at := 44; at+step <= len(wav); at += step {
		mono = append(mono, wav[at:at+2]...)
	}

	format := audio.Format{Encoding: audio.PCM16, Rate: rate}
	var packets [][]byte
	for n := format.FrameBytes(); len(mono) >= n; mono = mono[n:] {
		packets = append(packets, mono[:n])
	}

	if amplitude, snr := clearest(t, format, packets, 440); amplitude < 6000 || snr < 8 {
		t.Errorf("the phone hears itself with amplitude %.0f, signal to noise %.1f dB, in %d frames", amplitude, snr,
			len(packets))
	} else {
		t.Logf("the phone hears itself with amplitude %.0f, signal to noise %.1f dB", amplitude, snr)
	}
}
