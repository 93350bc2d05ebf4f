package freeswitch

import (
	"context"
	"encoding/json"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"trunkline/ingest/feed"
	"trunkline/internal/setting"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var update = flag.Bool("update", false, "write the golden files")

// domains is a directory of accounts whose domains are known.
type domains map[string]string

func (d domains) Resolve(ref string) (string, bool) { return ref, true }
func (d domains) ByDomain(domain string) (string, bool) {
	id, ok := d[domain]
	return id, ok
}

// newPlatform returns a platform that connects to the switch.
func (f *fakeSwitch) newPlatform(t testing.TB, cfg feed.Config, known domains) *platform {
	t.Helper()
	cfg.Name, cfg.Kind, cfg.Address = "pbx", feed.KindFreeSWITCH, f.address
	if cfg.Password == "" {
		cfg.Password = setting.Secret(password)
	}

	p, err := newPlatform(cfg, feed.Deps{Accounts: feed.NewAccounts(cfg, known), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}

	p.tableLag = 0
	return p
}

func openSession(t testing.TB, p *platform) feed.Session {
	t.Helper()
	s, err := p.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})

	return s
}

// read reads until n events have come.
func read(t testing.TB, s feed.Session, n int) []feed.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	var all []feed.Event
	for len(all) < n {
		batch, err := s.Read(ctx)
		if err != nil {
			t.Fatalf("after %d of %d events: %v", len(all), n, err)
		}
		all = append(all, batch...)
	}

	return all
}

// readEnd reads until the session ends.
func readEnd(t testing.TB, s feed.Session) ([]feed.Event, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	var all []feed.Event
	for {
		batch, err := s.Read(ctx)
		if err != nil {
			if ctx.Err() != nil {
				t.Fatal("the session continues")
			}
			return all, err
		}

		all = append(all, batch...)
	}
}

// lines returns the lines of a file.
func lines(t testing.TB, name string) []string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// golden compares v, as JSON lines, with a file.
func golden[V any](t *testing.T, name string, values []V) {
	t.Helper()
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)

	for _, v := range values {
		if err := encoder.Encode(v); err != nil {
			t.Fatal(err)
		}
	}

	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}

	want, got := lines(t, path), strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	for i := range max(len(want), len(got)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Fatalf("line %d of %s is\n%s, want\n%s", i+1, path, lineAt(got, i), lineAt(want, i))
		}
	}
}

// lineAt returns a line, or that it is missing.
func lineAt(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "missing"
}
