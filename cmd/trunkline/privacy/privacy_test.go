package privacy

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
	"trunkline/cmd/internal/clitest"
	"trunkline/cmd/trunkline/directory"
	"trunkline/event"
	"trunkline/internal/retry"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestAPersonIsExportedAndErased(t *testing.T) {
	w := clitest.New(t, "trunkline", func(p *cli.Program) []*cobra.Command {
		return []*cobra.Command{Command(p), directory.AccountCommand(p), directory.APIKeyCommand(p)}
	})
	s := w.Serve()
	account := strings.TrimSpace(w.MustRun("account", "create", "acme", "--domain", "acme.local"))

	key := strings.TrimSpace(w.MustRun("apikey", "create", "--account", account, "--scope", "recordings,ingest,read"))
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	call := func(method, path, body string, want int) []byte {
		t.Helper()
		for began := time.Now(); ; retry.Sleep(t.Context(), 50*time.Millisecond) {
			request, err := http.NewRequest(method, "https://"+s.Listen+path, strings.NewReader(body))
			check(t, err)
			request.Header.Set("X-API-Key", key)

			if method == http.MethodPost {
				request.Header.Set("Content-Type", "application/json")
			}

			answer, err := cli.Fetch(client, request, want)
			if err == nil {
				return answer
			}

			// the server does not know the key yet
			if !strings.Contains(err.Error(), "401") || time.Since(began) > 30*time.Second {
				t.Fatalf("%s %s: %v", method, path, err)
			}
		}
	}

	const person, other = "+4930123456", "+4930999999"
	now := time.Now().Unix()
	for i, leg := range []struct{ call, interaction, from, to string }{
		{"a1", "a", person, "1001"}, {"a2", "a", "1000", "1001"}, {"b1", "b", "1001", other},
		{"c1", "c", "1001", person}, {"h1", "h", person, "1002"},
	} {
		call(http.MethodPost, "/api/v2/ingest/svc.cdr",
			fmt.Sprintf(`{"id":%[1]q,"account_id":%[2]q,"call_id":%[1]q,"interaction_id":%[3]q,"from":%[4]q,"to":%[5]q,"timestamp":%[6]d}`,
				leg.call, account, leg.interaction, leg.from, leg.to, now-int64(i)), http.StatusAccepted)
	}

	const hostile = "calls.jsonl" // the name of a file of the export
	for id, name := range map[string]string{"a2": hostile, "b1": "r-b1", "h1": "r-h1"} {
		call(http.MethodPut, "/api/v2/recordings/"+name+"?call_id="+id, "audio of "+id, http.StatusCreated)
	}

	// JSON without a Content-Type
	call(http.MethodPut, "/api/v2/recordings/r-h1/hold", `{"reason":"case 1"}`, http.StatusOK)
	rows := func() string {
		var page struct{ Data []event.CDR }
		check(t, json.Unmarshal(
			call(http.MethodGet, fmt.Sprintf("/api/v2/reports/cdrs?startDate=%d&endDate=%d", now-100, now+100), "",
				http.StatusOK), &page))
		calls := ""

		for _, row := range page.Data {
			calls += row.CallID + " "
		}

		return calls
	}

	for began := time.Now(); len(rows()) != len("a1 a2 b1 c1 h1 "); retry.Sleep(t.Context(), 50*time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatalf("rows %q", rows())
		}
	}

	dir := filepath.Join(t.TempDir(), "export")
	out := w.MustRun("privacy", "export", "--number", person, "--account", "acme", "--output", dir)
	list, err := os.ReadFile(filepath.Join(dir, "calls.jsonl"))
	check(t, err)
	audio, err := os.ReadFile(filepath.Join(dir, "recordings", hostile))
	check(t, err)

	if !strings.HasPrefix(out, "4 call records and 2 recordings") || strings.Count(string(list), "\n") != 4 ||
		strings.Contains(string(list), other) || string(audio) != "audio of a2" {
		t.Errorf("%q, %s", out, list)
	}

	code, out, _ := w.Run("privacy", "erase", "--number", person, "--account", "acme")
	if code != cli.ExitFailed || rows() != "a1 a2 b1 c1 h1 " {
		t.Errorf("without a yes: %d %q, left %q", code, out, rows())
	}

	out = w.MustRun("privacy", "erase", "--number", person, "--account", "acme", "--yes")
	if !strings.HasPrefix(out,
		"erased: 3 call records, 1 recordings and 0 abandoned calls\nkept: recording r-h1 has a legal hold") ||
		strings.Count(out, "\nkafka ") != 5 || !strings.Contains(out, "kafka cdr still has") {
		t.Errorf("%s", out)
	}

	if got := rows(); got != "b1 h1 " {
		t.Errorf("left are %q", got)
	}

	call(http.MethodGet, "/api/v2/recordings/"+hostile, "", http.StatusNotFound)
	call(http.MethodGet, "/api/v2/recordings/r-b1", "", http.StatusOK)
	out = w.MustRun("privacy", "erase", "--number", person, "--account", "acme", "--yes")
	if !strings.HasPrefix(out, "erased: 0 call records, 0 recordings and 0 abandoned calls\n") {
		t.Errorf("repeated: %s", out)
	}

	w.MustFail(cli.ExitFailed, "no account nobody", "privacy", "export", "--number", "1", "--account", "nobody",
		"--output", filepath.Join(t.TempDir(), "x"))
}
