package logthrottle

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// recorder returns a log whose lines can be counted.
func recorder() (*slog.Logger, *bytes.Buffer) {
	var said bytes.Buffer
	return slog.New(New(slog.NewTextHandler(&said, nil))), &said
}

func TestAFaultThatLastsIsSaidSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, said := recorder()
		for i := range 1000 { // ten a second, for a hundred seconds
			log.With("room", "r").Warn("the disk is full", "n", i)
			time.Sleep(100 * time.Millisecond)
		}

		lines := strings.Split(strings.TrimSpace(said.String()), "\n")
		if len(lines) != Burst+3 {
			t.Fatalf("%d lines:\n%s", len(lines), said)
		}
		if want := fmt.Sprintf("n=300 held_back=%d", 300-Burst); !strings.HasSuffix(lines[Burst], want) {
			t.Errorf("%s, want %s", lines[Burst], want)
		}
		if strings.Contains(lines[Burst-1], "held_back") {
			t.Error(lines[Burst-1])
		}

		time.Sleep(2 * Period)
		said.Reset()
		for range Burst {
			log.Warn("the disk is full")
		}

		if n := strings.Count(said.String(), "\n"); n != Burst {
			t.Errorf("a fault that is new has %d lines", n)
		}
	})
}

func TestOnlyWarningsWithTheSameWordsAreHeldBack(t *testing.T) {
	log, said := recorder()
	for i := range 2 * Burst {
		log.Error("an error")
		log.Info("an access")
		log.Warn(fmt.Sprintf("warning %d", i))
	}
	if n := strings.Count(said.String(), "\n"); n != 6*Burst {
		t.Errorf("%d lines:\n%s", n, said)
	}
}

func TestRoutesAndNamesAreHeldBackApart(t *testing.T) {
	for _, key := range []string{"route", "name"} {
		log, said := recorder()
		for range 2 * Burst {
			log.Warn("request failed", "request_id", "1", key, "/a", "error", "the disk is full")
		}

		log.Warn("request failed", "request_id", "1", key, "/b", "error", "the database is away")
		if n := strings.Count(said.String(), "\n"); n != Burst+1 || !strings.Contains(said.String(), "database") {
			t.Errorf("%s: %d lines:\n%s", key, n, said)
		}
	}
}

func TestWhatIsRememberedIsBounded(t *testing.T) {
	c := warnings{byKey: map[string]*warningCount{}}
	for i := range 3 * maxCountedWarnings {
		c.allow(fmt.Sprint(i), time.Time{})
	}
	if len(c.byKey) > maxCountedWarnings {
		t.Errorf("%d messages are remembered", len(c.byKey))
	}
}
