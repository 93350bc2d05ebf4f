package embedded

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"trunkline/internal/fault"
)

func TestSocketIsForThisUserAndThisBroker(t *testing.T) {
	for name, dir := range map[string]string{
		"short": t.TempDir(),
		"long":  filepath.Join(t.TempDir(), strings.Repeat("deep/", 30)),
	} {
		t.Run(name, func(t *testing.T) {
			b := openBroker(t, Config{Dir: dir})
			info, err := os.Stat(filepath.Join(dir, socketName))
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Fatalf("mode %v, %v", info, err)
			}

			conn, err := DialSocket(dir)(t.Context(), "tcp", "any:1")
			if err != nil || !answers(t, conn) {
				t.Errorf("dialling: %v", err)
			}

			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := DialSocket(dir)(t.Context(), "", ""); err == nil {
				t.Error("dialled a stopped broker")
			}
			if _, err := b.Dial(t.Context(), "", ""); err == nil {
				t.Error("dialled a stopped broker within the process")
			}
		})
	}
}

func TestStaleSocketIsReplaced(t *testing.T) {
	dir := t.TempDir()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, socketName)})
	if err != nil {
		t.Fatal(err)
	}

	l.SetUnlinkOnClose(false) // as a kill leaves it
	l.Close()
	openBroker(t, Config{Dir: dir})

	if conn, err := DialSocket(dir)(t.Context(), "", ""); err != nil || !answers(t, conn) {
		t.Errorf("dialling: %v", err)
	}
}

func TestPortIsLoopbackOnly(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":0", "192.0.2.1:9092", "nonsense"} {
		if _, err := Open(Config{Dir: t.TempDir(), ListenTCP: address},
			quiet()); fault.KindOf(err) != fault.KindInvalid {
			t.Errorf("%s: %v", address, err)
		}
	}

	b := openBroker(t, Config{ListenTCP: "127.0.0.1:0"})
	conn, err := net.Dial("tcp", b.TCPAddr().String())
	if err != nil || !answers(t, conn) {
		t.Errorf("dialling: %v", err)
	}
}
