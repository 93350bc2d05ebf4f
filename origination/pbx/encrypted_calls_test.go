package pbx_test

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"trunkline/origination/pbx"
	"trunkline/telephony/sip"
)

// newEncryptedTestEnv listens for TLS too.
func newEncryptedTestEnv(t *testing.T, encryption sip.Encryption, dial *tls.Config, trunk pbx.Trunk) *testEnv {
	t.Helper()
	return newTestEnvWithConfig(t, sip.Config{
		Settings: sip.Settings{DigestAlgorithms: []string{"md5"}, Listen: "127.0.0.1:5060",
			TLSListen: "127.0.0.1:5061"},
		TLS: testAuthority().listen(t), DialTLS: dial,
	}, func(c *pbx.Config) {
		c.Encryption, c.Trunk.Transport = encryption, "udp"
		if trunk.Address != "" {
			c.Trunk = trunk
		}
	}, nil)
}

// mustTalk lets two connected phones talk and checks what each hears.
func mustTalk(t *testing.T, a, b *baresip, hz, other float64) {
	t.Helper()
	time.Sleep(2500 * time.Millisecond) // of audio
	a.command("hangup", "")
	b.wait("CALL_CLOSED")
	a.mustHear(other, hz)
	b.mustHear(hz, other)
}

func TestEncryptedPhones(t *testing.T) {
	if !inNetworkNamespace(t, "baresip") {
		return
	}

	const encrypted = "pcmu;mediaenc=srtp-mand"
	t.Run("an encrypted phone and a plain one", func(t *testing.T) {
		w := newEncryptedTestEnv(t, sip.EncryptionOptional, nil, pbx.Trunk{})
		a := startRegisteredBaresip(t, w, 5071, "1001", "auto", hzA, encrypted, "tls")
		b := startRegisteredBaresip(t, w, 5081, "1002", "auto", hzB, "pcmu", "udp")
		a.command("dial", "sip:1002@127.0.0.1;transport=tls")
		a.wait("CALL_ESTABLISHED")
		mustTalk(t, a, b, hzA, hzB)
		b.command("dial", "sip:1001@127.0.0.1")
		b.wait("CALL_ESTABLISHED")
		b.command("hangup", "")
		a.wait("CALL_CLOSED")
	})

	t.Run("encryption is required", func(t *testing.T) {
		w := newEncryptedTestEnv(t, sip.EncryptionRequired, nil, pbx.Trunk{})
		a := startRegisteredBaresip(t, w, 5071, "1001", "auto", hzA, encrypted, "tls")
		b := startRegisteredBaresip(t, w, 5081, "1002", "auto", hzB, encrypted, "tls")
		plain := startRegisteredBaresip(t, w, 5091, "1003", "auto", hzB, "pcmu", "udp")
		w.originate("1002")
		w.awaitState("bridged")
		mustTalk(t, a, b, hzA, hzB)
		w.awaitState("ended")
		plain.command("dial", "sip:1001@127.0.0.1")
		plain.wait("CALL_CLOSED")
		a.command("dial", "sip:1003@127.0.0.1;transport=tls")
		a.wait("CALL_CLOSED")
	})

	t.Run("keys beside a description of plain media", func(t *testing.T) {
		w := newEncryptedTestEnv(t, sip.EncryptionOptional, nil, pbx.Trunk{})
		a := startRegisteredBaresip(t, w, 5071, "1001", "auto", hzA, "pcmu;mediaenc=srtp", "tls")
		b := startRegisteredBaresip(t, w, 5081, "1002", "auto", hzB, "pcmu;mediaenc=srtp", "tls")
		a.command("dial", "sip:1002@127.0.0.1;transport=tls")
		a.wait("CALL_ESTABLISHED")
		mustTalk(t, a, b, hzA, hzB)
	})

	t.Run("a phone without TLS gets no keys", func(t *testing.T) {
		w := newEncryptedTestEnv(t, sip.EncryptionOptional, nil, pbx.Trunk{})
		a := startRegisteredBaresip(t, w, 5071, "1001", "auto", hzA, encrypted, "tcp")
		startRegisteredBaresip(t, w, 5081, "1002", "auto", hzB, "pcmu", "udp")
		a.command("dial", "sip:1002@127.0.0.1;transport=tcp")
		a.wait("CALL_CLOSED")
	})
}

// kamailioConfig is a trunk: a proxy that takes calls over TLS and passes them to
// a phone over UDP.
const kamailioConfig = `#!KAMAILIO
debug=1
log_stderror=yes
children=2
tcp_children=2
enable_tls=yes
listen=tls:127.0.0.1:5161
listen=udp:127.0.0.1:5160
mpath="%[3]s"
loadmodule "tls.so"
loadmodule "tm.so"
loadmodule "sl.so"
loadmodule "rr.so"
loadmodule "pv.so"
loadmodule "siputils.so"
modparam("tls", "certificate", "%[1]s")
modparam("tls", "private_key", "%[2]s")
modparam("tls", "tls_method", "TLSv1.2+")
request_route {
	if (has_totag()) {
		if (loose_route() || method == "ACK") { t_relay(); exit; }
		sl_send_reply("404", "Not here");
		exit;
	}
	if (method == "CANCEL") { if (t_check_trans()) { t_relay(); } exit; }
	record_route();
	$du = "sip:127.0.0.1:5091;transport=udp";
	t_relay();
}
`

const kamailioModules = "/usr/lib/x86_64-linux-gnu/kamailio/modules/"

// startKamailio starts the trunk.
func startKamailio(t *testing.T) {
	t.Helper()
	certFile, keyFile := testAuthority().issue(t)
	folder := t.TempDir()
	config := filepath.Join(folder, "kamailio.cfg")
	must(t, os.WriteFile(config, fmt.Appendf(nil, kamailioConfig, certFile, keyFile, kamailioModules), 0o600))
	log, err := os.Create(filepath.Join(folder, "log"))
	must(t, err)
	run := exec.Command("kamailio", "-f", config, "-DD", "-E", "-m", "32", "-M", "8", "-w", folder, "-Y", folder, "-P",
		filepath.Join(folder, "pid"))
	run.Stdout, run.Stderr = log, log
	must(t, run.Start())

	t.Cleanup(func() {
		_ = run.Process.Signal(os.Interrupt) // its children end with it
		_ = run.Wait()
		_ = log.Close()

		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("kamailio's log: %s", text[max(0, len(text)-4000):])
		}
	})

	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		conn, err := net.Dial("tcp", "127.0.0.1:5161")
		if err == nil {
			_ = conn.Close()
			return
		}

		if time.Now().After(deadline) {
			t.Fatalf("kamailio does not listen: %v", err)
		}
	}
}

func TestATrunkOverTLS(t *testing.T) {
	if _, err := os.Stat(kamailioModules + "tls.so"); err != nil {
		skipOrFail(t, "kamailio-tls-modules is not installed")
	}
	if !inNetworkNamespace(t, "baresip", "kamailio") {
		return
	}

	const number = "4930123"
	start := func(t *testing.T, encryption sip.Encryption, dial *tls.Config,
		far string) (w *testEnv, phone, outside *baresip) {
		w = newEncryptedTestEnv(t, sip.EncryptionOptional, dial,
			pbx.Trunk{Address: "127.0.0.1:5161", Transport: "tls", SRTP: string(encryption)})
		startKamailio(t)
		phone = startRegisteredBaresip(t, w, 5071, "1001", "auto", hzA, "pcmu;mediaenc=srtp-mand", "tls")
		outside = newBaresip(t, 5091, number, "auto", hzB, far+";regint=0", "udp")
		return w, phone, outside
	}

	for _, c := range []struct {
		name       string
		encryption sip.Encryption
		far        string
	}{
		{"encrypted end to end", sip.EncryptionRequired, "pcmu;mediaenc=srtp-mand"},
		{"plain media beyond the trunk", sip.EncryptionOptional, "pcmu"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, phone, outside := start(t, c.encryption, testAuthority().dial(), c.far)
			phone.command("dial", "sip:"+number+"@127.0.0.1;transport=tls")
			phone.wait("CALL_ESTABLISHED")
			mustTalk(t, outside, phone, hzB, hzA) // the trunk's side hangs up: its BYE comes over TLS
		})
	}

	t.Run("the trunk's certificate is of another authority", func(t *testing.T) {
		_, phone, outside := start(t, sip.EncryptionOptional, newTestCA().dial(), "pcmu")
		phone.command("dial", "sip:"+number+"@127.0.0.1;transport=tls")
		phone.wait("CALL_CLOSED")

		for {
			select {
			case e := <-outside.events:
				if e["type"] == "CALL_INCOMING" {
					t.Error("the call was placed")
				}
				continue
			default:
			}

			break
		}
	})
}
