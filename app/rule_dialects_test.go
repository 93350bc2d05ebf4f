package app_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// dialects are words of the platforms' own events, some of every source format.
// Only format knows them; readers of events know facts.
var dialects = []string{
	"CC-Action", "CC-Agent", "CC-Member", "CC-Queue", "CC-Cause", "Event-Name", "Event-Subclass", "Unique-ID",
	"CHANNEL_CREATE", "CHANNEL_ANSWER",
	"member-queue-start", "bridge-agent-start", "agent-offering", "agent-status-change", // FreeSWITCH
	"Event-Category", "acdc_", "member_add", "connect_win", "Member-Call-ID", "logged_out", "wrapup", // Kazoo
	"QueueCallerJoin", "QueueMemberPause", "AgentConnect", "AgentRingNoAnswer", // Asterisk
	"Agent-State", "Agent-ID", "Custom-Channel-Vars", // svc.cc
}

// readers are the folders whose code reads events of cc.evt.
var readers = []string{"fanout", "web", "cmd", "clients"}

// TestReadersOfEventsKnowNoDialect looks for the platforms' words in the code that
// ships, Go and JavaScript. The demonstration is a source and writes such events.
func TestReadersOfEventsKnowNoDialect(t *testing.T) {
	known := map[string]bool{}
	eachSource(t, "format", func(file, text string) {
		for _, word := range dialects {
			known[word] = known[word] || strings.Contains(text, word)
		}
	})

	for _, word := range dialects {
		if !known[word] {
			t.Errorf("%s is in no file of format: it finds nothing", word)
		}
	}

	for _, folder := range readers {
		files := 0
		eachSource(t, folder, func(file, text string) {
			files++
			for _, word := range dialects {
				if strings.Contains(text, word) {
					t.Errorf("%s has %s, which only format may know", file, word)
				}
			}
		})

		if files == 0 {
			t.Errorf("%s has no source file", folder)
		}
	}
}

// eachSource gives every file of code below the folder, but for tests, their data
// and the demonstration.
func eachSource(t *testing.T, folder string, give func(file, text string)) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join("..", folder), func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() &&
			(slices.Contains([]string{"testdata", "jstest"}, entry.Name()) ||
				strings.HasSuffix(file, "cmd/trunkline/demo")):
			return filepath.SkipDir
		case strings.HasSuffix(file, "_test.go") ||
			!slices.Contains([]string{".go", ".js", ".html"}, filepath.Ext(file)):
			return nil
		}

		text, err := os.ReadFile(file)
		if err == nil {
			give(file, string(text))
		}

		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
