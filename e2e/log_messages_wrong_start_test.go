package e2e

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"trunkline/internal/freeport"
	"trunkline/internal/sqldb"
)

// standaloneSettings returns the settings of an embedded server for one test.
func standaloneSettings(t *testing.T, more ...string) map[string]string {
	t.Helper()
	ports := freeport.Addresses(t, 3)
	return withSettings(map[string]string{
		"TRUNKLINE_DATA_DIR": filepath.Join(t.TempDir(), "data"), "TRUNKLINE_DEMO_PASSWORD": password,
		"TRUNKLINE_LISTEN": ports[0], "TRUNKLINE_METRICS_LISTEN": ports[1], "TRUNKLINE_SIP_LISTEN": ports[2],
	}, more...)
}

// writeTempFile writes a file with a text.
func writeTempFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func testWrongSettings(t *testing.T, messages *messageTable) {
	messages.mustExit(t, "listen: want host:port", standaloneSettings(t, "TRUNKLINE_LISTEN", "nope"))
	messages.mustExit(t, "unknown key", standaloneSettings(t), "--config", writeTempFile(t, "t.yaml", "lstn: x\n"))
	messages.mustExit(t, "_FILE: redis.password: cannot be read",
		standaloneSettings(t, "TRUNKLINE_REDIS_PASSWORD_FILE", "/absent/secret"))

	// All errors are reported at once, a line each.
	done := run(t,
		standaloneSettings(t, "TRUNKLINE_LISTEN", "nope", "TRUNKLINE_ROLES", "boss", "TRUNKLINE_LOG_LEVEL", "loud"),
		"", "serve")
	if done.code != 2 || strings.Count(done.stderr, "\ntrunkline: ")+1 != 3 {
		t.Errorf("exit %d after\n%s", done.code, done.stderr)
	}

	n := newNode(t, "unknown variable",
		map[string]string{"TRUNKLINE_DEMO_PASSWORD": password, "TRUNKLINE_PORT_80_TCP": "tcp://10.0.0.1"})
	n.start(t)
	n.awaitMessage(t, messages.row(t, "unknown TRUNKLINE_ variable"))
}

func testMissingFiles(t *testing.T, messages *messageTable) {
	messages.mustExit(t, "kafka.tls.ca_file: open", standaloneSettings(t,
		"TRUNKLINE_KAFKA_BROKERS", "127.0.0.1:1", "TRUNKLINE_KAFKA_TLS_ENABLED", "true", "TRUNKLINE_KAFKA_TLS_CA_FILE",
		"/absent/ca.pem"))
	one, other := newCertificate(t, day), newCertificate(t, day)
	messages.mustExit(t, "private key does not match",
		standaloneSettings(t, "TRUNKLINE_TLS_CERT_FILE", one.certFile, "TRUNKLINE_TLS_KEY_FILE", other.keyFile))

	settings := standaloneSettings(t, "TRUNKLINE_REDIS_ADDRESS", "127.0.0.1:1", "TRUNKLINE_REDIS_TLS_ENABLED", "true",
		"TRUNKLINE_REDIS_TLS_CA_FILE", writeTempFile(t, "ca.pem", "no certificate"), "TRUNKLINE_DIRECTORY_FILE",
		"/absent/directory.yaml",
		"TRUNKLINE_MASTER_KEY_FILE", "/absent/master.key", "TRUNKLINE_TLS_CERT_FILE", "/absent/cert.pem",
		"TRUNKLINE_TLS_KEY_FILE", "/absent/key.pem")
	done := run(t, settings, "", "serve")

	for _, key := range []string{"redis.tls.ca_file: ", "directory_file: ", "master_key_file: ", "tls.cert_file: "} {
		if !strings.Contains(done.stderr, "trunkline: "+key) {
			t.Errorf("%s is not named in\n%s", key, done.stderr)
		}
	}

	if done.code != 2 || strings.Count(done.stderr, "\n") != 4 {
		t.Errorf("exit %d after\n%s", done.code, done.stderr)
	}
}

func testMasterKeys(t *testing.T, messages *messageTable) {
	messages.mustExit(t, "a master key is 32 bytes", standaloneSettings(t, "TRUNKLINE_MASTER_KEY", "short"))

	n := newNode(t, "sealed", map[string]string{"TRUNKLINE_DEMO_PASSWORD": password})
	n.start(t)

	header := map[string]string{"X-Account-ID": "demo", "Content-Type": typeJSON}
	for name, value := range n.dialler(t, "admin").header {
		header[name] = value
	}

	const path = "/api/v2/config/ai_providers"
	provider := `{"name":"x","media":{"audioFormat":"pcm16","sampleRate":24000},"websocket":{"url":"wss://ai.example/","headers":{"Authorization":"s3cret"}}}`
	if a := n.mustCall(t, "POST", path, header, provider); a.status != 201 {
		t.Fatalf("configuring a provider: %s", a)
	}

	n.signal(t, syscall.SIGTERM)
	if code, ok := n.awaitExit(patience); !ok || code != 0 {
		t.Fatalf("exit %d, %v", code, ok)
	}

	kept := filepath.Join(n.dir, "master.key")
	if err := os.Rename(kept, kept+".away"); err != nil {
		t.Fatal(err)
	}

	messages.mustExit(t, "secrets in the database are sealed", n.settings)
	if _, err := os.Stat(kept); err == nil {
		t.Error("a new key was made in the place of the lost one")
	}
	if err := os.Rename(kept+".away", kept); err != nil {
		t.Fatal(err)
	}

	n.start(t)
	if a := n.mustCall(t, "GET", path, header, ""); a.status != 200 || !strings.Contains(string(a.body), `"name":"x"`) {
		t.Errorf("with the key brought back: %s", a)
	}
}

func testPortsTaken(t *testing.T, messages *messageTable) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()

	address := taken.Addr().String()
	messages.mustExit(t, "bind: address already in use", standaloneSettings(t, "TRUNKLINE_LISTEN", address))
	for _, setting := range []string{"metrics_listen", "sip.listen", "kafka.embedded_listen",
		"aisession.audiosocket_listen"} {
		name := "TRUNKLINE_" + strings.ToUpper(strings.ReplaceAll(setting, ".", "_"))
		done := run(t, standaloneSettings(t, name, address, "TRUNKLINE_LOG_LEVEL", "error"), "", "serve")
		want := "trunkline: " + setting + ": " + address +
			": bind: address already in use (is another trunkline running? set " +
			setting + " to another address)\n"
		if done.code != 1 || !strings.HasSuffix(done.stderr, want) {
			t.Errorf("%s: exit %d after\n%s", setting, done.code, done.stderr)
		}
	}
}

// testSIPPortTaken leaves sip.listen at its default, which is in use.
func testSIPPortTaken(t *testing.T, messages *messageTable) {
	const address = "127.0.0.1:5060"
	portMessage := messages.row(t, "sip: the port is in use by another program")
	n := newNode(t, "without phones", map[string]string{"TRUNKLINE_DEMO_PASSWORD": password})

	for freed := true; freed; {
		taken, err := net.Listen("tcp", address) // on error, a node of another test uses the port, perhaps only briefly
		n.start(t)
		eventually(t, "whether the port is in use", func() error {
			text := readFile(t, n.log)
			freed = portMessage.countMatches(text) == 0
			if freed && (err == nil || !strings.Contains(text, "sip: phones register here")) {
				return errors.New("not logged")
			}
			return nil
		})

		if err == nil {
			_ = taken.Close()
		}

		if freed {
			n.kill(t)
		}
	}
}

func testMediaPortsTaken(t *testing.T, messages *messageTable) {
	var from int
	for from == 0 {
		first, err := net.ListenPacket("udp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer first.Close()

		if port := first.LocalAddr().(*net.UDPAddr).Port; port%2 == 0 {
			from = port
		}
	}

	ports := strconv.Itoa(from) + "-" + strconv.Itoa(from+1)
	n := newNode(t, "without media", standaloneSettings(t, "TRUNKLINE_SIP_RTP_PORTS", ports))
	n.probes = "http://" + n.settings["TRUNKLINE_METRICS_LISTEN"]
	n.start(t)
	n.awaitMessage(t, messages.row(t, "no media port can be opened"))
}

func testDataDirectory(t *testing.T, messages *messageTable) {
	messages.mustExit(t, "name a directory that this user may write to",
		standaloneSettings(t, "TRUNKLINE_DATA_DIR", filepath.Join(writeTempFile(t, "file", ""), "data")))

	n := newNode(t, "owner", map[string]string{"TRUNKLINE_DEMO_PASSWORD": password})
	n.start(t)
	messages.mustExit(t, "another trunkline uses this data directory",
		standaloneSettings(t, "TRUNKLINE_DATA_DIR", n.dir))
	n.login(t, apiPaths, user("alice")) // the first node is unaffected

	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "trunkline.db"), []byte(strings.Repeat("no database ", 1000)),
		0o600); err != nil {
		t.Fatal(err)
	}

	messages.mustExit(t, "is damaged, or no database", standaloneSettings(t, "TRUNKLINE_DATA_DIR", dir))
}

// openDatabase opens a node's database while the node may run.
func openDatabase(t *testing.T, cfg sqldb.Config) *sqldb.DB {
	t.Helper()
	db, err := sqldb.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})

	return db
}
