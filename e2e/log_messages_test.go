package e2e

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// messageTable holds the rows of the table in docs/messages.md with the program's messages, their
// causes and remedies.
type messageTable struct {
	mu   sync.Mutex
	rows []*messageRow
}

// messageRow is a row of the table.
type messageRow struct {
	line    string // as printed, with … for variable parts
	pattern *regexp.Regexp
	then    string // the exit code, or how the program continues
	seen    bool
}

// testedElsewhere names the tests that produce the messages that this test does not.
var testedElsewhere = map[string]string{
	// tests cannot set the machine's clock
	"this machine's clock was set":       "TestAClockThatIsSet of internal/selfcheck",
	"the disk is full: free space":       "TestFullDisk",
	"data_dir: the disk of":              "TestFullDisk",
	"MiB are free on the disk of":        "TestFullDisk",
	"database or disk is full":           "TestFullDisk",
	"database does not answer":           "TestDatabaseAway",
	"sqlite is busy or its disk is slow": "TestOpeningWaitsForALockedSQLiteFile of internal/sqldb",
	"waiting for the database: ch":       "TestDatabaseAway",
}

func readMessageTable(t *testing.T) *messageTable {
	t.Helper()
	text := readFile(t, "../docs/messages.md")
	_, text, table := strings.Cut(text, "\n| message |")
	if !table {
		t.Fatal("docs/messages.md has no table of messages")
	}

	messages := &messageTable{}
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "| `") {
			if len(messages.rows) > 0 {
				break
			}
			continue
		}

		cells := strings.Split(strings.ReplaceAll(strings.TrimSpace(line), `\|`, "/"), "|")
		if len(cells) != 6 {
			t.Fatalf("not four cells: %s", line)
		}

		quotedLine := strings.Trim(strings.TrimSpace(cells[1]), "`")
		quoted := strings.Split(quotedLine, "…")
		for i := range quoted {
			quoted[i] = regexp.QuoteMeta(quoted[i])
		}

		messages.rows = append(messages.rows, &messageRow{
			line: quotedLine, pattern: regexp.MustCompile(strings.Join(quoted, ".*")),
			then: strings.TrimSpace(cells[4]),
		})
	}

	return messages
}

// row returns the row whose message contains the part.
func (m *messageTable) row(t testing.TB, part string) *messageRow {
	t.Helper()
	var found []*messageRow
	for _, r := range m.rows {
		if strings.Contains(r.line, part) {
			found = append(found, r)
		}
	}

	if len(found) != 1 {
		t.Fatalf("%d rows of docs/messages.md have %q", len(found), part)
	}

	m.mu.Lock()
	defer m.mu.Unlock()

	found[0].seen = true
	return found[0]
}

// countMatches returns the number of log lines that match the row.
func (r *messageRow) countMatches(log string) (n int) {
	for line := range strings.Lines(log) {
		// slog quotes a message and escapes its content.
		if r.pattern.MatchString(strings.ReplaceAll(line, `\"`, `"`)) {
			n++
		}
	}
	return n
}

// mustExit checks that a start fails with the row's exit code and no other message.
func (m *messageTable) mustExit(t *testing.T, part string, settings map[string]string, args ...string) {
	t.Helper()
	r := m.row(t, part)
	want := map[string]int{"exit 1": 1, "exit 2": 2}[r.then[:min(len(r.then), len("exit 1"))]]
	done := run(t, settings, "", append([]string{"serve"}, args...)...)
	var errLines []string // without the intermediate lines

	for line := range strings.Lines(done.stderr) {
		if !strings.Contains(line, "level=INFO") && strings.TrimSpace(line) != "" {
			errLines = append(errLines, line)
		}
	}

	if done.code != want || len(errLines) != 1 || r.countMatches(errLines[0]) != 1 {
		t.Errorf("exit %d, and %d lines:\n%s\nwant %s and\n%s", done.code, len(errLines), strings.Join(errLines, ""),
			r.then, r.line)
	}
}

// awaitMessage waits for the row's message in a running node's log.
func (n *node) awaitMessage(t testing.TB, r *messageRow) {
	t.Helper()
	eventually(t, n.name+" to say "+r.line, func() error {
		if r.countMatches(readFile(t, n.log)) == 0 {
			return os.ErrNotExist
		}
		return nil
	})
}

// TestMessages makes the program print every message of the table: the text must be the page's,
// and the documented outcome must follow.
func TestMessages(t *testing.T) {
	t.Parallel()
	messages := readMessageTable(t)
	tests := map[string]func(*testing.T, *messageTable){
		"wrong settings":                 testWrongSettings,
		"missing files":                  testMissingFiles,
		"master keys":                    testMasterKeys,
		"ports taken":                    testPortsTaken,
		"default SIP port taken":         testSIPPortTaken,
		"media ports taken":              testMediaPortsTaken,
		"data directory":                 testDataDirectory,
		"database schemas on SQLite":     testDatabaseSchemasSQLite,
		"database schemas on PostgreSQL": testDatabaseSchemasPostgres,
		"Kafka away at start":            testKafkaAwayAtStart,
		"Kafka goes away":                testKafkaGoesAway,
		"Redis away at start":            testRedisAwayAtStart,
		"no bucket of recordings":        testNoBucketOfRecordings,
		"certificates":                   testCertificates,
		"certificates of others":         testOthersCertificates,
		"clocks":                         testClocks,
	}

	t.Run("by", func(t *testing.T) {
		for name, test := range tests {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, messages)
			})
		}
	})

	if strings.Contains(flag.Lookup("test.run").Value.String(), "/") {
		return // only a part of the subtests ran
	}

	for part := range testedElsewhere {
		messages.row(t, part)
	}

	for _, r := range messages.rows {
		if !r.seen {
			t.Errorf("no test makes it say %s", r.line)
		}
	}
}
