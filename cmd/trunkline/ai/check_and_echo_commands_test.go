package ai

import (
	"bufio"
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"trunkline/cmd/internal/cli"
	"trunkline/cmd/trunkline/ai/aicheck"
)

// startEcho starts `ai echo` and returns its address and a function that returns its output after
// its end.
func startEcho(t *testing.T, more ...string) (address string, end func() string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	from, to := io.Pipe()

	p := &cli.Program{In: strings.NewReader(""), Out: to, Err: to}
	code := make(chan int, 1)
	go func() {
		code <- p.Run(ctx, p.Root("trunkline", "", Command(p)),
			append([]string{"ai", "echo", "--listen", "127.0.0.1:0"}, more...))
		_ = to.Close()
	}()

	lines := bufio.NewScanner(from)
	if !lines.Scan() {
		t.Fatalf("it printed nothing, exit code %d", <-code)
	}

	address, ok := strings.CutPrefix(lines.Text(), "listening on ")
	if !ok {
		t.Fatalf("it printed %q", lines.Text())
	}

	printed := make(chan string, 1)
	go func() {
		var all strings.Builder
		for lines.Scan() {
			all.WriteString(lines.Text() + "\n")
		}
		printed <- all.String()
	}()

	end = func() string {
		cancel()
		if got := <-code; got != cli.ExitOK {
			t.Errorf("exit code %d", got)
		}
		return <-printed
	}

	return address, end
}

func runCheck(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e strings.Builder
	p := &cli.Program{In: strings.NewReader(""), Out: &o, Err: &e}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	code = p.Run(ctx, p.Root("trunkline", "", Command(p)), append([]string{"ai", "check"}, args...))
	return code, o.String(), e.String()
}

func TestTheCheckPassesTheEcho(t *testing.T) {
	t.Parallel()
	address, end := startEcho(t)
	for _, format := range []string{"pcm16", "g711_ulaw", "opus"} {
		code, out, errs := runCheck(t, address+"/voice", "--format", format, "--duration", "600ms", "--header",
			"Authorization: Bearer sesame")
		if code != cli.ExitOK || errs != "" || strings.Contains(out, "warn") ||
			!strings.Contains(out, "30 media, as described") {
			t.Errorf("%s: exit code %d\n%s%s", format, code, out, errs)
		}
	}

	printed := end()
	for _, want := range []string{"session 3: open, /voice, with the headers Authorization", "opus at 48000 Hz",
		"dtmf 5, 160 ms", "dtmf #\n",
		"hangup NORMAL_CLEARING", "closed, 1000 : 1 start, 30 media, 2 dtmf, 1 hangup"} {
		if !strings.Contains(printed, want) {
			t.Errorf("%q is not in\n%s", want, printed)
		}
	}

	if strings.Contains(printed, "VIOLATION") || strings.Contains(printed, "sesame") {
		t.Errorf("printed\n%s", printed)
	}
}

func TestTheCheckOverTLS(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t)
	address, end := startEcho(t, "--cert", cert, "--key", key)
	code, out, errs := runCheck(t, address, "--ca", cert, "--duration", "500ms", "--json")
	var report aicheck.Report
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != cli.ExitOK || !report.OK ||
		!strings.Contains(report.Points[0].Detail, "TLS 1.3") {
		t.Errorf("exit code %d, %v\n%s%s", code, err, out, errs)
	}

	code, out, errs = runCheck(t, address, "--duration", "500ms")
	if code != cli.ExitFailed || !strings.Contains(out, "fail  connection") ||
		!strings.Contains(errs, "1 of 1 checks failed") {
		t.Errorf("a certificate of nobody's: exit code %d\n%s%s", code, out, errs)
	}
	if code, out, _ := runCheck(t, address, "--duration", "500ms", "--insecure"); code != cli.ExitOK {
		t.Errorf("insecure: exit code %d\n%s", code, out)
	}

	end()
}

// certificate writes the certificate of httptest to files.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()

	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	pair := server.TLS.Certificates[0]
	private, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}

	for file, block := range map[string]*pem.Block{
		cert: {Type: "CERTIFICATE", Bytes: pair.Certificate[0]}, key: {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	return cert, key
}

func TestAICommandLinesThatCannotBeMeant(t *testing.T) {
	for want, args := range map[string][]string{
		"ai check needs ADDRESS":                  {"check"},
		"the provider's address must be wss://":   {"check", "https://x"},
		`there is no format "alaw"`:               {"check", "wss://x", "--format", "alaw"},
		"a header is 'Name: value'":               {"check", "wss://x", "--header", "sesame"},
		"the tone must last":                      {"check", "wss://x", "--duration", "1ms"},
		"reading a trusted certificate":           {"check", "wss://x", "--ca", "/nowhere"},
		"ai echo needs --cert and --key together": {"echo", "--cert", "x"},
		"ai needs a command, one of echo, check":  {},
	} {
		var out, errs strings.Builder
		p := &cli.Program{In: strings.NewReader(""), Out: &out, Err: &errs}
		code := p.Run(t.Context(), p.Root("trunkline", "", Command(p)), append([]string{"ai"}, args...))
		if code != cli.ExitUsage || !strings.Contains(errs.String(), want) ||
			strings.Contains(errs.String(), "sesame") {
			t.Errorf("%q: exit code %d, %s", args, code, errs.String())
		}
	}
}
