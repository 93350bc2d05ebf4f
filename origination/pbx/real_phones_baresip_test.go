package pbx_test

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"trunkline/origination"
	"trunkline/telephony/sip"
	"trunkline/telephony/sip/siptest"
)

// baresip is a phone from Debian.
type baresip struct {
	t       *testing.T
	folder  string
	control net.Conn
	events  chan map[string]any
	process *exec.Cmd
}

// newBaresip starts one at a port of loopback, that plays a tone. All share an
// address, for whatever it is told, a phone's audio leaves from the address
// that the route has.
func newBaresip(t *testing.T, port int, user, answer string, hz float64, codecs, transport string) *baresip {
	t.Helper()
	b := &baresip{t: t, folder: siptest.BaresipFolder(t), events: make(chan map[string]any, 1000)}
	tone := filepath.Join(b.folder, "tone.wav")
	must(t, os.WriteFile(tone, wav(hz), 0o600))
	must(t, os.Mkdir(filepath.Join(b.folder, "rec"), 0o700))
	config := fmt.Sprintf(`sip_listen 127.0.0.1:%[1]d
net_interface 127.0.0.1
module_path /usr/lib/baresip/modules
module g711.so
module opus.so
module aufile.so
module aubridge.so
module sndfile.so
module srtp.so
module_tmp account.so
module_app menu.so
module_app ctrl_tcp.so
ctrl_tcp_listen 127.0.0.1:%[4]d
audio_source aufile,%[2]s
audio_player aubridge,x
snd_path %[3]s/rec
rtp_stats no
sip_cafile %[3]s/ca.pem
sip_verify_server yes
`, port, tone, b.folder, port+1000)
	must(t, os.WriteFile(filepath.Join(b.folder, "ca.pem"), testAuthority().pem, 0o600))
	account := fmt.Sprintf(
		"<sip:%[1]s@127.0.0.1;transport=%[4]s>;auth_user=%[1]s;auth_pass=%[1]s;answermode=%[2]s;audio_codecs=%[3]s;regint=60\n",
		user, answer, codecs, transport)
	must(t, os.WriteFile(filepath.Join(b.folder, "config"), []byte(config), 0o600))
	must(t, os.WriteFile(filepath.Join(b.folder, "accounts"), []byte(account), 0o600))
	b.process = exec.Command("baresip", "-f", b.folder)
	log, err := os.Create(filepath.Join(b.folder, "log"))
	must(t, err)
	b.process.Stdout, b.process.Stderr = log, log
	must(t, b.process.Start())

	t.Cleanup(func() {
		if b.control != nil {
			_ = b.control.Close()
		}

		_ = b.process.Process.Kill() // it may hang in unregistering
		_ = b.process.Wait()
		_ = log.Close()

		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("%s's log: %s", user, text[max(0, len(text)-3000):])
		}
	})

	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		b.control, err = net.Dial("tcp", fmt.Sprint("127.0.0.1:", port+1000))
		if err == nil {
			break
		}

		if time.Now().After(deadline) {
			t.Fatalf("baresip does not listen: %v", err)
		}
	}

	go b.read()
	return b
}

// read takes netstrings with JSON.
func (b *baresip) read() {
	defer close(b.events)

	for r := bufio.NewReader(b.control); ; {
		length, err := r.ReadString(':')
		if err != nil {
			return
		}

		n, err := strconv.Atoi(strings.Trim(length, ":,"))
		if err != nil {
			return
		}

		text := make([]byte, n+1)
		if _, err := io.ReadFull(r, text); err != nil {
			return
		}

		var e map[string]any
		if json.Unmarshal(text[:n], &e) == nil {
			b.events <- e
		}
	}
}

func (b *baresip) command(name, params string) {
	b.t.Helper()
	text := fmt.Sprintf(`{"command":%q,"params":%q}`, name, params)
	_, err := fmt.Fprintf(b.control, "%d:%s,", len(text), text)
	must(b.t, err)
}

// wait waits for an event of a call.
func (b *baresip) wait(kind string) {
	b.t.Helper()
	for limit := time.After(patience); ; {
		select {
		case e, ok := <-b.events:
			if !ok {
				b.t.Fatalf("baresip ended before %s", kind)
			}
			if e["type"] == kind {
				return
			}
		case <-limit:
			b.t.Fatalf("baresip did not come to %s", kind)
		}
	}
}

const sampleRate = 8000

// wav is ten seconds of a tone, 16 bits mono.
func wav(hz float64) []byte {
	const n = 10 * sampleRate
	b := []byte("RIFF....WAVEfmt ")
	b = binary.LittleEndian.AppendUint32(b, 16)
	b = binary.LittleEndian.AppendUint16(b, 1)
	b = binary.LittleEndian.AppendUint16(b, 1)
	b = binary.LittleEndian.AppendUint32(b, sampleRate)
	b = binary.LittleEndian.AppendUint32(b, 2*sampleRate)
	b = binary.LittleEndian.AppendUint16(b, 2)
	b = binary.LittleEndian.AppendUint16(b, 16)
	b = append(b, "data"...)
	b = binary.LittleEndian.AppendUint32(b, 2*n)

	for i := range n {
		b = binary.LittleEndian.AppendUint16(b, uint16(int16(9000*math.Sin(2*math.Pi*hz*float64(i)/sampleRate))))
	}

	binary.LittleEndian.PutUint32(b[4:], uint32(len(b)-8))
	return b
}

// amplitudesHeard is the last second but a half of what the phone heard, by frequency:
// the amplitude of each.
func (b *baresip) amplitudesHeard(frequencies ...float64) map[float64]float64 {
	b.t.Helper()
	files, err := filepath.Glob(filepath.Join(b.folder, "rec", "*-dec.wav"))
	if err != nil || len(files) == 0 {
		b.t.Fatalf("there is no recording: %v", err)
	}

	data, err := os.ReadFile(files[len(files)-1])
	must(b.t, err)
	const end, length = sampleRate / 2, sampleRate
	samples := make([]float64, 0, len(data)/2)

	for i := 44; i+1 < len(data); i += 2 {
		samples = append(samples, float64(int16(binary.LittleEndian.Uint16(data[i:]))))
	}

	if len(samples) < end+length {
		b.t.Fatalf("the recording has %d samples", len(samples))
	}

	samples = samples[len(samples)-end-length : len(samples)-end]
	found := map[float64]float64{}
	for _, hz := range frequencies {
		found[hz] = amplitude(samples, hz)
	}

	return found
}

// amplitude is Goertzel's.
func amplitude(samples []float64, hz float64) float64 {
	k := 2 * math.Cos(2*math.Pi*hz/sampleRate)
	var s1, s2 float64
	for _, x := range samples {
		s1, s2 = x+k*s1-s2, s1
	}
	return 2 / float64(len(samples)) * math.Sqrt(s1*s1+s2*s2-k*s1*s2)
}

const hzA, hzB = 440, 880

func (b *baresip) mustHear(other, own float64) {
	b.t.Helper()
	got := b.amplitudesHeard(other, own, toneOfRinging)
	b.t.Logf("heard at %v Hz %.0f, own %.0f, ring tone %.0f", other, got[other], got[own], got[toneOfRinging])
	if got[other] < 8500 || got[own] > 50 || got[toneOfRinging] > 50 {
		b.t.Errorf("amplitudes by frequency: %v; want the other's tone of 9000 alone", got)
	}
}

const toneOfRinging = 425

// startTwoBaresips starts two, registered.
func startTwoBaresips(t *testing.T, w *testEnv, answer string) (a, b *baresip) {
	t.Helper()
	return startRegisteredBaresip(t, w, 5071, "1001", "auto", hzA, "pcmu", "udp"),
		startRegisteredBaresip(t, w, 5081, "1002", answer, hzB, "pcmu", "udp")
}

func startRegisteredBaresip(t *testing.T, w *testEnv, port int, user, answer string, hz float64,
	codecs, transport string) *baresip {
	t.Helper()
	b := newBaresip(t, port, user, answer, hz, codecs, transport)
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if ok, err := w.driver.Registered(t.Context(), account, user); ok || err != nil {
			must(t, err)
			return b
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s did not register", user)
		}
	}
}

// awaitState waits for a state and ignores earlier ones.
func (w *testEnv) awaitState(state origination.State) origination.Progress {
	w.t.Helper()
	for limit := time.After(patience); ; {
		select {
		case p := <-w.steps:
			if p.State == state {
				return p
			}
			if p.State == origination.Ended {
				w.t.Fatalf("the call ended with %s", p.Cause)
			}
		case <-limit:
			w.t.Fatalf("the call did not come to %s", state)
		}
	}
}

func TestRealPhones(t *testing.T) {
	if !inNetworkNamespace(t, "baresip") {
		return
	}

	t.Run("each hears the other, the owner hangs up", func(t *testing.T) {
		w := newTestEnvAt(t, "127.0.0.1:5060", nil)
		a, b := startTwoBaresips(t, w, "auto")
		began := time.Now()
		w.originate("1002")
		w.awaitState(origination.Bridged)
		time.Sleep(3 * time.Second) // of audio
		a.command("hangup", "")
		w.awaitState(origination.Ended)
		b.wait("CALL_CLOSED")
		a.mustHear(hzB, hzA)
		b.mustHear(hzA, hzB)
		owner, _, destination := w.callRecords()
		if len(owner) != 1 || len(destination) != 1 || *destination[0].BillingSeconds < 3 ||
			float64(*destination[0].BillingSeconds) > time.Since(began).Seconds()+1 {
			t.Errorf("records: %+v %+v", owner, destination)
		}
	})

	t.Run("the destination hangs up", func(t *testing.T) {
		w := newTestEnvAt(t, "127.0.0.1:5060", nil)
		a, b := startTwoBaresips(t, w, "auto")
		w.originate("1002")
		w.awaitState(origination.Bridged)
		b.command("hangup", "")

		if p := w.awaitState(origination.Ended); p.Cause != string(sip.NormalClearing) {
			t.Errorf("ended with %s", p.Cause)
		}

		a.wait("CALL_CLOSED")
	})

	t.Run("the destination rejects", func(t *testing.T) {
		w := newTestEnvAt(t, "127.0.0.1:5060", nil)
		a, b := startTwoBaresips(t, w, "manual")
		w.originate("1002")
		b.wait("CALL_INCOMING")
		b.command("hangup", "") // 486

		if p := w.awaitState(origination.Ended); p.Cause != string(sip.UserBusy) {
			t.Errorf("ended with %s", p.Cause)
		}

		a.wait("CALL_CLOSED")
	})

	t.Run("the destination does not answer", func(t *testing.T) {
		w := newTestEnvAt(t, "127.0.0.1:5060", nil)
		_, b := startTwoBaresips(t, w, "manual")
		w.originate("1002")
		b.wait("CALL_INCOMING")
		must(t, w.driver.Cancel(t.Context(), "call-1"))

		if p := w.awaitState(origination.Ended); p.Cause != string(sip.OriginatorCancel) {
			t.Errorf("ended with %s", p.Cause)
		}

		b.wait("CALL_CLOSED")
	})

	t.Run("over TCP", func(t *testing.T) {
		w := newTestEnvAt(t, "127.0.0.1:5060", nil)
		a := startRegisteredBaresip(t, w, 5071, "1001", "auto", hzA, "pcmu", "tcp")
		b := startRegisteredBaresip(t, w, 5081, "1002", "auto", hzB, "pcmu", "tcp")
		w.originate("1002")
		w.awaitState(origination.Bridged)
		b.command("hangup", "")
		w.awaitState(origination.Ended)
		a.wait("CALL_CLOSED")
	})

	t.Run("a phone calls a phone, in two laws of G.711", func(t *testing.T) {
		w := newTestEnvAt(t, "127.0.0.1:5060", nil)
		a := startRegisteredBaresip(t, w, 5071, "1001", "auto", hzA, "pcma", "udp")
		b := startRegisteredBaresip(t, w, 5081, "1002", "auto", hzB, "pcmu", "udp")
		a.command("dial", "sip:1002@127.0.0.1")
		a.wait("CALL_ESTABLISHED")
		time.Sleep(2500 * time.Millisecond) // of audio
		a.command("hangup", "")
		b.wait("CALL_CLOSED")
		a.mustHear(hzB, hzA)
		b.mustHear(hzA, hzB)
	})
}
