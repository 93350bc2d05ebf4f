package cdr

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
	"trunkline/cmd/internal/clitest"
	"trunkline/cmd/trunkline/directory"
)

func newImportRunner(t *testing.T) *clitest.Runner {
	return clitest.New(t, "trunkline", func(p *cli.Program) []*cobra.Command {
		return []*cobra.Command{Command(p), directory.AccountCommand(p), directory.APIKeyCommand(p)}
	})
}

// errLogDir writes captured call records in the layout of mod_json_cdr's error directory, in each
// of its encodings, and returns their UUIDs.
func errLogDir(t *testing.T) (dir string, uuids []string) {
	t.Helper()
	dir = t.TempDir()
	captured, err := os.ReadFile("../../../format/freeswitch/testdata/freeswitch.json_cdr/c2c-nobowout.in.jsonl")
	if err != nil {
		t.Fatal(err)
	}

	encodings := []func(string) string{
		func(record string) string { return record },
		func(record string) string { return strings.ReplaceAll(url.QueryEscape(record), "+", "%20") },
		func(record string) string { return base64.StdEncoding.EncodeToString([]byte(record)) },
	}

	for n, record := range strings.Split(strings.TrimSpace(string(captured)), "\n") {
		var document struct{ Variables struct{ UUID string } }
		if err := json.Unmarshal([]byte(record), &document); err != nil {
			t.Fatal(err)
		}

		uuid := document.Variables.UUID
		uuids = append(uuids, uuid)
		name := uuid + ".cdr.json"

		if n == 0 {
			name = filepath.Join("2026-11-22-10-00-00", "a_"+name) // rotate, prefix-a-leg
		}

		writeFile(t, filepath.Join(dir, name), encodings[n%len(encodings)](record)+"\n")
	}

	writeFile(t, filepath.Join(dir, "notes.txt"), "no call record")
	return dir, uuids
}

func writeFile(t *testing.T, name, content string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700),
		os.WriteFile(name, []byte(content), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func TestImportIntoAServer(t *testing.T) {
	w := newImportRunner(t)
	s := w.Serve()
	account := strings.TrimSpace(w.MustRun("account", "create", "acme", "--domain", "acme.local"))
	w.Environ = append(w.Environ,
		cli.EnvAPIKey+"="+strings.TrimSpace(w.MustRun("apikey", "create", "--account", account)))
	dir, uuids := errLogDir(t)
	if len(uuids) != 4 {
		t.Fatalf("%d captured legs", len(uuids))
	}

	// A server may not have a new key yet.
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		code, out, errs := w.Run("cdr", "import", dir)
		if code == cli.ExitOK && out == "4 new, 0 imported before, 0 refused\n" {
			break
		}
		if !strings.Contains(errs, "401") || time.Since(began) > 30*time.Second {
			t.Fatalf("exit code %d, stdout %q, stderr %q", code, out, errs)
		}
	}

	if out := w.MustRun("cdr", "import", dir); out != "0 new, 4 imported before, 0 refused\n" {
		t.Errorf("repeated it prints %q", out)
	}

	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		if rows := countRecordsOf(w, s, account); rows == 4 {
			break
		} else if time.Since(began) > time.Minute {
			t.Fatalf("%d rows", rows)
		}
	}

	writeFile(t, filepath.Join(dir, "broken.cdr.json"), "{\n")
	code, out, errs := w.Run("cdr", "import", "--delete", dir)
	if code != cli.ExitFailed || out != "0 new, 4 imported before, 1 refused\n" ||
		!strings.Contains(errs, "broken.cdr.json: 400 Bad Request") {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, out, errs)
	}
	if left, err := recordFiles(dir); err != nil || len(left) != 1 || !strings.HasSuffix(left[0], "broken.cdr.json") {
		t.Errorf("left are %q, %v", left, err)
	}

	w.Environ = w.Environ[:len(w.Environ)-1]
	w.MustFail(cli.ExitUsage, "needs an API key", "cdr", "import", dir)
	w.MustFail(cli.ExitUsage, "no such file", "cdr", "import", "--api-key", "x", filepath.Join(dir, "nowhere"))
}

// Import retries at a busy server; at an unreachable one it ends with advice.
func TestImportWaitsForTheServer(t *testing.T) {
	var posts atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if posts.Add(1)%2 == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprint(w, `{"accepted":1}`)
	}))
	defer server.Close()

	dir, _ := errLogDir(t)
	w := newImportRunner(t)
	if out := w.MustRun("cdr", "import", "--api-key", "k", "--url", server.URL,
		dir); out != "4 new, 0 imported before, 0 refused\n" {
		t.Errorf("prints %q", out)
	}

	server.Close()
	code, out, errs := w.Run("cdr", "import", "--api-key", "k", "--url", server.URL, "--wait", "10ms", dir)
	if code != cli.ExitFailed || out != "0 new, 0 imported before, 0 refused\n" ||
		!strings.Contains(errs, "stopped after 0 of 4 files; repeat the command to continue") {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, out, errs)
	}
}

// masterLines are lines as Asterisk's cdr_csv writes them, with loguniqueid, loguserfield and newcdrcolumns.
const masterLines = `"acme","+12025550111","600","from-internal","""Bob <Sales>"" <+12025550111>","PJSIP/trunk-00000001","PJSIP/101-00000002","Queue","support,t,,,300","2026-11-20 10:00:00","2026-11-20 10:00:12","2026-11-20 10:02:12",132,120,"ANSWERED","DOCUMENTATION","1795165200.7","","","1795165200.7",41
"acme","1001","1002","default","""Ann"" <1001>","PJSIP/1001-00000003","","Dial","PJSIP/1002,20","2026-11-20 11:30:00",,"2026-11-20 11:31:00",60,0,"NO ANSWER","DOCUMENTATION","1795170600.1","","","1795170600.1",42
"acme","1001","10`

func TestImportOfAsterisksMasterCSV(t *testing.T) {
	w := newImportRunner(t)
	s := w.Serve()
	account := strings.TrimSpace(w.MustRun("account", "create", "acme", "--domain", "acme.local"))
	w.Environ = append(w.Environ,
		cli.EnvAPIKey+"="+strings.TrimSpace(w.MustRun("apikey", "create", "--account", account)))
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "Master.csv"), masterLines)
	writeFile(t, filepath.Join(dir, "acme.csv"), masterLines)

	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) { // a server may not have a new key yet
		code, out, errs := w.Run("cdr", "import", "--time-zone", "Europe/Berlin", dir)
		if code == cli.ExitOK && out == "1 new, 0 imported before, 0 refused\n" {
			break
		}
		if !strings.Contains(errs, "401") || time.Since(began) > 30*time.Second {
			t.Fatalf("exit code %d, stdout %q, stderr %q", code, out, errs)
		}
	}

	if out := w.MustRun("cdr", "import", "--delete", "--time-zone", "Europe/Berlin",
		filepath.Join(dir, "Master.csv")); out != "0 new, 1 imported before, 0 refused\n" {
		t.Errorf("repeated it prints %q", out)
	}
	if _, err := os.Stat(filepath.Join(dir, "Master.csv")); err != nil {
		t.Error("Asterisk's file is gone")
	}

	for began := time.Now(); countRecordsOf(w, s, account) != 2; time.Sleep(50 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatalf("%d rows", countRecordsOf(w, s, account))
		}
	}

	writeFile(t, filepath.Join(dir, "no.csv"), strings.Repeat("a,", 15)+"a\n")
	code, out, errs := w.Run("cdr", "import", filepath.Join(dir, "no.csv"))
	if code != cli.ExitFailed || out != "0 new, 0 imported before, 1 refused\n" ||
		!strings.Contains(errs, "line 1: 16 columns") {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, out, errs)
	}

	w.MustFail(cli.ExitUsage, "no such time zone", "cdr", "import", "--time-zone", "Mars",
		filepath.Join(dir, "Master.csv"))
}

func TestMasterCSVIsReadAsTheManagersEvents(t *testing.T) {
	bodies, err := readMasterCSV([]byte(masterLines), "Europe/Berlin")
	if err != nil || len(bodies) != 1 {
		t.Fatalf("%d bodies, %v", len(bodies), err)
	}

	lines := strings.Split(strings.TrimSpace(string(bodies[0])), "\n")
	if len(lines) != 2 { // the last line is being written
		t.Fatalf("%d records", len(lines))
	}

	var record map[string]string
	if err := json.Unmarshal([]byte(lines[0]), &record); err != nil {
		t.Fatal(err)
	}

	for name, want := range map[string]string{
		"Event": "Cdr", "Time-Zone": "Europe/Berlin", "CallerID": `"Bob <Sales>" <+12025550111>`,
		"LastData": "support,t,,,300",
		"Duration": "132", "UniqueID": "1795165200.7", "Linkedid": "1795165200.7", "Sequence": "41",
		"Disposition": "ANSWERED",
	} {
		if record[name] != want {
			t.Errorf("%s: %q, want %q", name, record[name], want)
		}
	}
}

func FuzzMasterCSV(f *testing.F) {
	f.Add([]byte(masterLines))
	f.Fuzz(func(t *testing.T, content []byte) {
		bodies, err := readMasterCSV(content, "UTC")
		for _, body := range bodies {
			for line := range strings.Lines(string(body)) {
				if !json.Valid([]byte(line)) {
					t.Errorf("%q, %v", line, err)
				}
			}
		}
	})
}
